package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

func TestCheckExplainsEverySetting(t *testing.T) {
	path := configFile(t, t.TempDir(), "grpc: {ping_interval: 20s}")
	code, out, stderr := run(t, "check", "--all", "--config", path)
	if code != command.ExitDone {
		t.Fatalf("got the exit code %d and %s, want %d", code, stderr, command.ExitDone)
	}
	lines := map[string]string{}
	for line := range strings.Lines(out) {
		key, rest, _ := strings.Cut(line, " ")
		lines[key] = strings.Join(strings.Fields(rest), " ")
	}
	for _, s := range config.All() {
		if got, want := lines[s.Key], config.Variable(s.Key)+" "+s.Description; !strings.HasSuffix(got, want) {
			t.Errorf("%s: got %q, want it to end %q", s.Key, got, want)
		}
	}
	if got, want := lines["grpc.ping_interval"], "20s 15s DRAGOMAN_GRPC_PING_INTERVAL"; !strings.HasPrefix(got, want) {
		t.Errorf("what differs from the default: got %q, want it to begin %q", got, want)
	}
}

func TestCheckTellsHowMuchTheJournalKeeps(t *testing.T) {
	for _, tt := range []struct {
		args      []string
		want, not string
	}{
		{nil, "128MiB", "1GiB"},
		{[]string{"--data-dir", t.TempDir()}, "1GiB", "128MiB"},
	} {
		code, out, stderr := run(t, append([]string{"check", "--all"}, tt.args...)...)
		if code != command.ExitDone {
			t.Fatalf("%v: got the exit code %d and %s, want %d", tt.args, code, stderr, command.ExitDone)
		}
		for line := range strings.Lines(out) {
			if line, ok := strings.CutPrefix(line, "journal.bytes "); ok {
				value, _, _ := strings.Cut(line, "DRAGOMAN_JOURNAL_BYTES")
				if !strings.Contains(value, tt.want) || strings.Contains(value, tt.not) {
					t.Errorf("%v: got %q, want the value %s and no other default", tt.args, value, tt.want)
				}
			}
		}
	}
}

func TestCheckExplainsBudgetsInWords(t *testing.T) {
	path := configFile(t, t.TempDir(), "budgets: [{agent: ben, tokens: 100000}, {thread: '*', tokens: 7, per: total}]")
	code, out, stderr := run(t, "check", "--all", "--config", path)
	if code != command.ExitDone {
		t.Fatalf("got the exit code %d and %s, want %d", code, stderr, command.ExitDone)
	}
	const want = "agent ben: 100000 tokens a day; each thread: 7 tokens in total"
	if !strings.Contains(out, want) {
		t.Errorf("got\n%s\nwant it to say %s", out, want)
	}
}

// configFile writes a file of settings and returns its path.
func configFile(t *testing.T, dir, yaml string) string {
	t.Helper()
	path := filepath.Join(dir, "dragoman.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAnUnknownVariableIsAWarningOfEveryCommand(t *testing.T) {
	t.Setenv("DRAGOMAN_PORT", "tcp://10.0.0.1:8080") // of Kubernetes, beside a Service dragoman
	t.Setenv("DRAGOMAN_LIMIT_HOPS", "3")
	for _, args := range [][]string{{"check"}, {"version"}} {
		code, _, stderr := run(t, args...)
		if code != command.ExitDone {
			t.Errorf("%q: got %d and %s, want it done", args, code, stderr)
		}
		for _, want := range []string{"dragoman: warning: unknown variable DRAGOMAN_LIMIT_HOPS: did you mean DRAGOMAN_LIMITS_HOPS?\n", "dragoman: warning: DRAGOMAN_PORT and its kin are of Kubernetes"} {
			if !strings.Contains(stderr, want) {
				t.Errorf("%q: got %q, want %q in it", args, stderr, want)
			}
		}
	}
}
