package client_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
)

// joins are the ways to join a hub, each by a handler and with whole turns.
var joins = map[string]struct {
	join  client.JoinFunc
	serve client.ServeFunc
}{
	"coven":    {client.JoinCoven, client.ServeCoven},
	"parallax": {client.JoinParallax, client.ServeParallax},
	"acp":      {client.JoinACP, client.ServeACP},
	"native":   {client.JoinNative, client.ServeNative},
}

func TestEveryAgentSaysWhyItCannotJoin(t *testing.T) {
	const problem = `{"status":401,"code":"unauthenticated","detail":"Invalid authentication token"}`
	card, log := core.Card{ID: "kid"}, slog.New(slog.DiscardHandler)
	for _, tt := range []struct {
		status    int
		answer    string
		to        client.Hub
		code      core.Code // "" for no Fault
		says      string
		absent    bool // a hub may come
		webSocket bool // of the answer to a WebSocket alone
	}{
		{status: http.StatusUnauthorized, answer: problem, code: core.CodeUnauthenticated, says: "the hub asks for a token: give it with --token or DRAGOMAN_TOKEN"},
		{status: http.StatusUnauthorized, answer: problem, to: client.Hub{Token: "old"}, code: core.CodeUnauthenticated, says: "the hub does not know the token, or it has expired"},
		{status: http.StatusNotFound, answer: "<html>no such page", says: "is not a hub, or another listener of it: set --hub to the address"},
		{status: http.StatusForbidden, answer: "X-Agent-Id and agent_id differ: send one identity\n", says: "refuses the connection: X-Agent-Id and agent_id differ", webSocket: true},
		{status: http.StatusServiceUnavailable, answer: `{"detail":"it has as many connections as it takes"}`, says: "accepts no connections now: it has as many connections as it takes", absent: true, webSocket: true},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if strings.HasPrefix(tt.answer, "{") {
				w.Header().Set("Content-Type", "application/problem+json")
			}
			w.WriteHeader(tt.status)
			_, _ = io.WriteString(w, strings.TrimSuffix(tt.answer, "\n"))
		}))
		to := tt.to
		to.URL, to.Named = server.URL, "--hub"
		for dialect, by := range joins {
			if dialect == "coven" && tt.webSocket {
				continue
			}
			never := errors.New("got it joined, want it refused")
			for how, err := range map[string]error{
				"a handler": by.join(t.Context(), to, card, func(context.Context, core.Request, func(core.Body) error) error { return never }, func(client.AskFunc) { t.Error(never) }, log),
				"a turn":    by.serve(t.Context(), to, card, func(context.Context, agent.Turn) error { return never }, func() { t.Error(never) }, log),
			} {
				if err == nil || !strings.Contains(err.Error(), tt.says) || tt.code != "" && core.AsFault(err).Code != tt.code || client.IsNoHub(err) != tt.absent {
					t.Errorf("%d for %s of %s: got %v (absent: %t), want %s %q (absent: %t)", tt.status, how, dialect, err, client.IsNoHub(err), tt.code, tt.says, tt.absent)
				}
			}
		}
		server.Close()
		http.DefaultClient.CloseIdleConnections()
	}
}

func TestAnAgentOfCovenNeedsTheAddressOfItsHub(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"addresses":{}}`) }))
	defer server.Close()
	err := client.JoinCoven(t.Context(), client.Hub{URL: server.URL}, core.Card{ID: "kid"}, nil, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "names no gRPC address that can be reached from here: start it with one, or name it with --grpc-addr") {
		t.Errorf("got %v, want how to name it", err)
	}
	http.DefaultClient.CloseIdleConnections()
}
