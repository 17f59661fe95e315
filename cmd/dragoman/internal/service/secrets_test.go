package service_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

// checkFiles checks the files that changed default settings name.
func checkFiles(change func(*config.Config)) error {
	c := config.Local()
	change(&c)
	return service.CheckFiles(c)
}

func TestAnInvalidSecretsFileIsNotQuoted(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"an alias":         {"fold: {KEY: *hunter2}", "is not YAML"},
		"no YAML":          {"fold:\n  KEY: x\n hunter2: y: z", "is not YAML in line"},
		"no agents":        {"KEY: hunter2", `want the id of an agent, or "*" for all`},
		"no agent":         {"domain:hunter2:\n  KEY: x", `want the id of an agent, or "*" for all`},
		"a list":           {"- hunter2", "is not YAML"},
		"a number":         {"fold: {KEY: 4711, OTHER: hunter2}", `KEY of "fold" is not text: write it in quotes`},
		"a NUL":            {`fold: {KEY: "hunter2\0"}`, `KEY of "fold" is not text`},
		"no variable":      {"fold: {\"hunter2=\": x}", `a name below "fold" cannot be one of a variable`},
		"nothing below it": {"fold: ", `want the id of an agent`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "secrets.yaml")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			err := checkFiles(func(c *config.Config) { c.Coven.Secrets = path })
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want %q and no secret", err, c.want)
			}
		})
	}
	err := checkFiles(func(c *config.Config) { c.Coven.Secrets = filepath.Join(t.TempDir(), "none") })
	if err == nil || !strings.Contains(err.Error(), "name a YAML file that the hub may read") {
		t.Errorf("no file: got %v, want what to do", err)
	}
}

func TestAnInvalidSigningSecretsFileIsNotQuoted(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no YAML":  {"a: *hunter2", "is not YAML"},
		"a list":   {"- hunter2", "is not YAML"},
		"no text":  {"a: [hunter2]", "want ids of agents, each with its secret in quotes"},
		"no agent": {"\"*\": hunter2hunter2hunter2", "want ids of agents"},
		"short":    {"a: hunter2", `the secret of "a" is short`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "secrets.yaml")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			err := checkFiles(func(c *config.Config) { c.Parallax.Secrets = path })
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want %q and no secret", err, c.want)
			}
		})
	}
}
