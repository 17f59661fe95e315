package service_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

func TestAnInvalidTokensFileIsNotQuoted(t *testing.T) {
	const good = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
	for name, c := range map[string]struct{ text, want string }{
		"no YAML":                        {"tokens:\n  x: y\n hunter2: y: z", "is not YAML in line"},
		"no list":                        {"tokens: hunter2", "want tokens: and below it a list"},
		"an empty list":                  {"tokens: []", "a list of at least one"},
		"another key":                    {"tokens: []\nhunter2: x", "want tokens: and below it a list"},
		"no token":                       {"tokens: [hunter2]", "token 1: want principal"},
		"the token itself":               {"tokens: [{principal: a, sha256: hunter2}]", "token 1: sha256: want the SHA-256"},
		"no principal":                   {"tokens: [{sha256: " + good + "}]", "principal and sha256 are needed"},
		"no hash":                        {"tokens: [{principal: a}]", "principal and sha256 are needed"},
		"a time that is no":              {"tokens: [{principal: a, sha256: " + good + ", expires: hunter2}]", "expires: want a time"},
		"operator is what":               {"tokens: [{principal: a, sha256: " + good + ", operator: hunter2}]", "operator: want true or false"},
		"an unknown key":                 {"tokens: [{principal: a, sha256: " + good + ", hunter2: x}]", "unknown key"},
		"a principal that is an address": {"tokens:\n- principal: a\n  sha256: " + good + "\n- principal: capability:hunter2\n  sha256: " + good, "tokens.yaml, line 4: token 2: principal: want a name of 1 to 256 bytes, such as alice, on one line"},
		"everybody":                      {"tokens: [{principal: \"*\", sha256: " + good + "}]", "line 1: token 1: principal: want a name"},
		"the hub":                        {"tokens: [{principal: hub, sha256: " + good + "}]", "and none that is an address (hub, *, capability:..., domain:...)"},
		"a line break":                   {"tokens:\n\n- principal: \"a\\nhunter2\"\n  sha256: " + good, "line 3: token 1: principal: want a name"},
		"twice":                          {"tokens: [{principal: a, sha256: " + good + "}, {principal: b, sha256: " + good + "}]", "line 1: token 2: its hash is in the file twice"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tokens.yaml")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			err := checkFiles(func(c *config.Config) { c.Auth.Tokens = path })
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want %q and no token", err, c.want)
			}
		})
	}
	if err := checkFiles(func(c *config.Config) { c.Auth.Tokens = filepath.Join(t.TempDir(), "none") }); err == nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: got %v, want that there is none", err)
	}
}
