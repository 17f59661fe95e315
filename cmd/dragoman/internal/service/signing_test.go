package service

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestASecretToSignWithIsNotRepeated(t *testing.T) {
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
			_, err := readSigningSecrets(path)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want it to say %q and to repeat nothing", err, c.want)
			}
		})
	}
}
