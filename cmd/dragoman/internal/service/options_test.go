package service

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/credentials"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
)

func TestTheSettingsOfPiReachItsServer(t *testing.T) {
	t.Setenv("HOME", "/home/kit")
	standard := pi.Options{
		Commands:        command.Options{PromptTimeout: 4 * time.Hour, Rates: command.Rates{All: -1, Client: 1000, Session: 100, Server: 100, Answers: 60}},
		MaxMessageBytes: 10 << 20, MaxSessions: 100, MaxConnections: 1000, SessionLifetime: 24 * time.Hour,
		Breakers: command.Breakers{Agent: command.Breaker{Failures: 5}},
		Retries:  3, CompactAt: 87,
		SessionDir: "/srv/data/pi-sessions", SessionRoots: []string{"/home/kit/.pi/agent/sessions", "/srv/pi"}, ExportDirs: []string{"/srv/pages"},
	}
	off := standard
	off.Commands.Rates = command.Rates{All: -1, Client: -1, Session: -1, Server: -1, Answers: -1}
	off.Breakers.Agent.Failures = -1
	off.SessionLifetime, off.CompactAt, off.Bash = -1, -1, true
	off.SessionDir = ""
	const without = `pi: {rates: {all: 0, client: 0, session: 0, server: 0, answers: 0}, session_lifetime: 0s, compact_at: 0, bash: true, session_dir: "",
  breakers: {agent_failures: 0}}`
	for yaml, want := range map[string]pi.Options{"": standard, without: off} {
		c, err := configOf(t, yaml, []string{"DRAGOMAN_PI_SESSION_ROOTS=~/.pi/agent/sessions,/srv/pi", "DRAGOMAN_PI_EXPORT_DIRS=/srv/pages", "DRAGOMAN_DATA_DIR=/srv/data"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, piOptions(c, pi.Options{}), cmpopts.EquateComparable(), cmpopts.IgnoreUnexported(pi.Options{}), cmpopts.IgnoreFields(pi.Options{}, "Log", "Link"), cmpopts.IgnoreFields(command.Options{}, "Journal")); diff != "" {
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

func TestTheMCPEndpointIsReachableForTheAgent(t *testing.T) {
	at := func(addr string) net.Addr {
		a, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for _, tt := range []struct{ bound, to, from, want string }{
		{"127.0.0.1:8080", "127.0.0.1:50051", "127.0.0.1:40000", "http://127.0.0.1:8080/mcp"},
		{"127.0.0.1:8080", "192.0.2.1:50051", "192.0.2.1:40000", "http://127.0.0.1:8080/mcp"},
		{"127.0.0.1:8080", "192.0.2.1:50051", "192.0.2.9:40000", ""},
		{"192.0.2.1:8080", "192.0.2.1:50051", "192.0.2.9:40000", "http://192.0.2.1:8080/mcp"},
		{"0.0.0.0:8080", "192.0.2.1:50051", "192.0.2.9:40000", "http://192.0.2.1:8080/mcp"},
		{"0.0.0.0:8080", "127.0.0.1:50051", "127.0.0.1:40000", "http://127.0.0.1:8080/mcp"},
		{"0.0.0.0:8080", "[2001:db8::1]:50051", "[2001:db8::9]:40000", ""},
		{"0.0.0.0:8080", "[::1]:50051", "[::1]:40000", "http://127.0.0.1:8080/mcp"},
		{"[::]:8080", "192.0.2.1:50051", "192.0.2.9:40000", "http://192.0.2.1:8080/mcp"},
		{"[::]:8080", "[2001:db8::1]:50051", "[2001:db8::9]:40000", "http://[2001:db8::1]:8080/mcp"},
		{"[::]:8080", "[fe80::1%eth0]:50051", "[fe80::9%eth0]:40000", "http://[fe80::1%25eth0]:8080/mcp"},
		{"", "127.0.0.1:50051", "127.0.0.1:40000", ""},
	} {
		if got := endpoint(false, tt.bound, at(tt.to), at(tt.from)); got != tt.want {
			t.Errorf("HTTP at %q, gRPC at %s, from %s: got %q, want %q", tt.bound, tt.to, tt.from, got, tt.want)
		}
	}
	if got := endpoint(true, "[::]:8080", nil, nil); got != "" {
		t.Errorf("without a peer: got %q, want none", got)
	}
}

func TestTheLoggedPathHasNoToken(t *testing.T) {
	for path, want := range map[string]string{
		"/mcp/secret": "/mcp/…", "/mcp": "/mcp", "/mcp/": "/mcp/", "/v1/tasks": "/v1/tasks", "/v1/mcp": "/v1/mcp",
		"//mcp/secret": "/mcp/…", "/mcp//secret": "/mcp/…", "/./mcp/secret": "/mcp/…", "/mcp/./secret": "/mcp/…", "/x/../mcp/secret": "/mcp/…",
		"/%6dcp/secret": "/mcp/…", "/mcp%2Fsecret": "/mcp/…", "/%256Dcp%252Fsecret": "/mcp/…", "/%25zz/%256dcp/secret": "/mcp/…", "/MCP/secret": "/mcp/…",
		"/mcp;v=1/secret": "/mcp/…", "/mcp%20/secret": "/mcp/…", "/mcp%5Csecret": "/mcp/…",
		"/mcp%00/secret": "/mcp/…", "/mcp./secret": "/mcp/…", "/mcp%E2%80%8B/secret": "/mcp/…", "/a2a/mc/p": "/a2a/mc/p",
	} {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://localhost"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := pathOf(r); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTheDocumentationListsTheReloadableSettings(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "These take effect at once:")
	text, _, _ = strings.Cut(text, "The log names other changed settings")
	for _, setting := range reloadable {
		if !strings.Contains(text, "`"+setting+"`") {
			t.Errorf("docs/operations.md: got %q, want %s in what SIGHUP applies", text, setting)
		}
	}
}

func TestTheSecretsOfAnAgentOverrideThoseOfAll(t *testing.T) {
	all := credentials.Secrets{"*": {"A": "1", "B": "2"}, "fold": {"B": "3", "C": "4"}}
	if diff := cmp.Diff(map[string]string{"A": "1", "B": "3", "C": "4"}, all.Of("fold")); diff != "" {
		t.Errorf("fold (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"A": "1", "B": "2"}, all.Of("other")); diff != "" {
		t.Errorf("other (-want +got):\n%s", diff)
	}
	if got := credentials.Secrets(nil).Of("fold"); len(got) > 0 {
		t.Errorf("got %v, want none", got)
	}
}
