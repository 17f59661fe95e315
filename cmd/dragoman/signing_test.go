package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/core"
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

func TestAnAgentThatSignsIsTakenInByAHubThatRequiresIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets.yaml")
	if err := os.WriteFile(path, []byte("a: 0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newStage(t, func(c *Config) { c.Parallax.Secrets, c.Parallax.RequireSignatures = path, true })
	work := func(ctx context.Context, id core.AgentID, secret string) error {
		conn, err := dialWS(ctx, place{http: "http://" + s.service.bound.HTTP}, parallaxPath, http.Header{"X-Agent-Id": {string(id)}}, parallaxBytes)
		if err != nil {
			return err
		}
		return parallax.Work(ctx, conn, core.Card{ID: id}, shout, parallax.WorkOptions{Secret: []byte(secret)})
	}
	for _, c := range []struct {
		id     core.AgentID
		secret string
	}{{"a", ""}, {"a", "another secret"}, {"b", "0123456789abcdef"}} {
		var f *core.Fault
		if err := work(t.Context(), c.id, c.secret); !errors.As(err, &f) || f.Code != core.CodeUnauthenticated {
			t.Errorf("%s with %q: got %v, want it refused", c.id, c.secret, err)
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- work(ctx, "a", "0123456789abcdef") }()
	s.await(t, "joined a")
	x := connectREST(t, s)
	defer x.leave()
	if got := x.open(inquiry{to: "a", content: "hello"}, true).outcome(t); got.Text != "HELLO" {
		t.Errorf("got %+v, want HELLO", got)
	}
	leave()
	<-ended
}
