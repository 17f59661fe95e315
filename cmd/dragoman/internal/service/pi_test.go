package service

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

func TestTheSettingsOfPiReachItsServer(t *testing.T) {
	t.Setenv("HOME", "/home/kit")
	breaker := func(failures int, window time.Duration) command.Breaker {
		return command.Breaker{Failures: failures, Window: window, Open: 30 * time.Second, Trials: 2}
	}
	standard := pi.Options{
		Commands:        command.Options{MaxPending: 100, MaxInFlight: 10_000, InFlightBytes: 256 << 20, Rates: command.Rates{All: -1, Client: 1000, Session: 100, Server: 100, Answers: 60}, CommandTimeout: 30 * time.Second, DependencyTimeout: 30 * time.Second, MaxOutcomes: 2000, OutcomeBytes: 64 << 20, KeyTTL: 600 * time.Second, PromptTimeout: 300 * time.Second},
		MaxMessageBytes: 10 << 20, MaxSessions: 100, AllSessions: 10_000, MaxConnections: 1000, SessionLifetime: 24 * time.Hour, Breakers: command.Breakers{Agent: breaker(5, time.Minute), BashSession: breaker(10, 2*time.Minute), BashAll: breaker(50, 2*time.Minute)}, Retries: 3, RetryDelay: 2 * time.Second, CompactAt: 87, MaxFileBytes: 64 << 20, SessionDir: "/home/kit/.pi/agent/sessions", SessionRoots: []string{"/home/kit/.pi/agent/sessions", "/srv/pi"}, ExportDirs: []string{"/srv/pages"},
	}
	off := standard
	off.Commands.Rates = command.Rates{All: -1, Client: -1, Session: -1, Server: -1, Answers: -1}
	off.Breakers = command.Breakers{Agent: breaker(-1, time.Minute), BashSession: breaker(-1, 2*time.Minute), BashAll: breaker(-1, 2*time.Minute)}
	off.SessionLifetime, off.CompactAt, off.Bash = -1, -1, true
	off.SessionDir = ""
	const without = `pi: {rates: {all: 0, client: 0, session: 0, server: 0, answers: 0}, session_lifetime: 0s, compact_at: 0, bash: true, session_dir: "",
  breakers: {agent_failures: 0, session_failures: 0, bash_failures: 0}}`
	for yaml, want := range map[string]pi.Options{"": standard, without: off} {
		c, err := configOf(t, yaml, []string{"DRAGOMAN_PI_SESSION_ROOTS=~/.pi/agent/sessions,/srv/pi", "DRAGOMAN_PI_EXPORT_DIRS=/srv/pages"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, piOptions(c.Pi, pi.Options{}), cmpopts.EquateComparable(), cmpopts.IgnoreFields(pi.Options{}, "Log", "Link"), cmpopts.IgnoreFields(command.Options{}, "Journal")); diff != "" {
			t.Errorf("%q (-want +got):\n%s", yaml, diff)
		}
	}
}

// configOf reads settings from YAML and the environment.
func configOf(t *testing.T, yaml string, environ []string) (config.Config, error) {
	t.Helper()
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	config.AddFlags(fs)
	path := filepath.Join(t.TempDir(), "dragoman.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fs.Parse([]string{"--config", path}); err != nil {
		t.Fatal(err)
	}
	return config.Load(fs, environ)
}
