package service

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheSecretsOfAnAgentAreItsOwnAboveThoseOfAll(t *testing.T) {
	all := secrets{"*": {"A": "1", "B": "2"}, "fold": {"B": "3", "C": "4"}}
	if diff := cmp.Diff(map[string]string{"A": "1", "B": "3", "C": "4"}, all.of("fold")); diff != "" {
		t.Errorf("fold (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"A": "1", "B": "2"}, all.of("other")); diff != "" {
		t.Errorf("other (-want +got):\n%s", diff)
	}
	if got := (secrets)(nil).of("fold"); len(got) > 0 {
		t.Errorf("got %v, want none where there are none", got)
	}
}

func TestASecretThatCannotBeReadIsNotRepeated(t *testing.T) {
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
			_, err := readSecrets(path)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want it to say %q and to repeat no secret", err, c.want)
			}
		})
	}
	_, err := readSecrets(filepath.Join(t.TempDir(), "none"))
	if err == nil || !strings.Contains(err.Error(), "name a YAML file that the hub may read") {
		t.Errorf("no file: got %v, want what to do", err)
	}
}
