package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// An error in a setting names its source: the flag, the variable or the line of the file.
func TestASettingErrorNamesItsSource(t *testing.T) {
	h := newTestHub(t, nil)
	taken := h.service.Addresses().HTTP
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	used := filepath.Join(dir, "used")
	newTestHub(t, func(c *config.Config) { c.DataDir = used })
	shut := []string{"--grpc-addr=", "--http-addr=", "--pi-addr=", "--stdio"}
	for name, tt := range map[string]struct {
		key, value string
		args       []string
		want       string // PLACE is the source of the setting, IN the same after "with"
	}{
		"no address":               {"http_addr", ":70000", nil, `dragoman: PLACE :70000: "70000" is no port (0 to 65535); write it as`},
		"open to the network":      {"pi_addr", "0.0.0.0:0", nil, "dragoman: PLACE 0.0.0.0:0 is open to the network and nobody has to authenticate"},
		"an address that is taken": {"grpc_addr", taken, []string{"--http-addr=", "--pi-addr="}, "choose other addresses with IN (port 0 picks a free one)"},
		"a directory that is none": {"data_dir", file, shut, "dragoman: PLACE " + file + ": "},
		"a directory that is used": {"data_dir", used, shut, "another hub uses the data directory " + used + ": stop it, or name another with IN\n"},
		"no socket":                {"pi_socket", filepath.Join(file, "x"), shut, "dragoman: PLACE " + filepath.Join(file, "x") + ": "},
		"no file to be ready in":   {"ready_file", filepath.Join(file, "x"), shut, "dragoman: PLACE " + filepath.Join(file, "x") + ": "},
	} {
		flag, env := "--"+config.FlagOf(tt.key), config.Variable(tt.key)
		yaml := configFile(t, t.TempDir(), tt.key+": "+`"`+tt.value+`"`)
		for _, at := range []struct {
			how, place, in string
			args           []string
			environ        string
		}{
			{"by a flag", flag, flag, []string{flag + "=" + tt.value}, ""},
			{"by a variable", env, env, nil, tt.value},
			{"by a file", yaml + ":1: " + tt.key, tt.key + " in " + yaml, []string{"--config", yaml}, ""},
		} {
			t.Run(name+" "+at.how, func(t *testing.T) {
				if at.environ != "" {
					t.Setenv(env, at.environ)
				}
				args := append([]string{"serve"}, tt.args...)
				args = append(args, at.args...)
				code, _, stderr := run(t, args...)
				want := strings.NewReplacer("PLACE", at.place, "IN", at.in).Replace(tt.want)
				if code == command.ExitDone || !strings.Contains(stderr, want) {
					t.Errorf("got %d and %q, want %q", code, stderr, want)
				}
				if at.how != "by a flag" && strings.Contains(stderr, flag) {
					t.Errorf("got %q, want %s not named", stderr, flag)
				}
			})
		}
	}
}

func TestAClientErrorNamesTheVariableItCameFrom(t *testing.T) {
	unused := "http://" + fixedAddr(t)
	for _, tt := range []struct {
		variable, value string
		args            []string
		want            string
	}{
		{"DRAGOMAN_HUB", "localhost", []string{"agents"}, `dragoman: DRAGOMAN_HUB "localhost": write it as http://host:port`},
		{"DRAGOMAN_HUB", "localhost", []string{"stdio"}, `dragoman: DRAGOMAN_HUB "localhost": write it as http://host:port`},
		{"DRAGOMAN_HUB", "localhost", []string{"agents", "--hub", "elsewhere"}, `dragoman: --hub "elsewhere": write it as http://host:port`},
		{"DRAGOMAN_HUB", unused, []string{"agents"}, "or name another with DRAGOMAN_HUB (dial"},
		{"DRAGOMAN_CONFIG", "/none.yaml", []string{"check"}, "dragoman: DRAGOMAN_CONFIG /none.yaml: no such file or directory; name a YAML file"},
	} {
		t.Setenv("DRAGOMAN_HUB", "")
		t.Setenv("DRAGOMAN_CONFIG", "")
		t.Setenv(tt.variable, tt.value)
		if code, _, stderr := run(t, tt.args...); code == command.ExitDone || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s=%s dragoman %q: got %d and %q, want %q", tt.variable, tt.value, tt.args, code, stderr, tt.want)
		}
	}
}

// configFile writes a settings file and returns its path.
func configFile(t *testing.T, dir, yaml string) string {
	t.Helper()
	path := filepath.Join(dir, "dragoman.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
