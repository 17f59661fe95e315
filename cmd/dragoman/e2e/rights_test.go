package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
)

func TestATaskIsItsRequestersAndOperators(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "alice", "bob", "root", "a") })
	at := h.url()
	request := func(token, method, path, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, at+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	busy := func(ctx context.Context, _ core.Request, _ func(core.Body) error) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	go func() {
		ended <- service.Joins()[parallax.Dialect](ctx, client.Hub{URL: at, Token: "a"}, core.Card{ID: "a", MaxConcurrent: 1}, busy, func(client.AskFunc) {}, h.log)
	}()
	defer func() { leave(); <-ended }()
	h.await(t, "joined a")
	status, text := request("alice", http.MethodPost, "/v1/tasks", `{"to":"a","content":"hello","thread":"hers"}`)
	var task struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(text), &task); err != nil || status != http.StatusCreated {
		t.Fatalf("got %d and %s, want a task", status, text)
	}
	for _, c := range []struct{ method, path, body string }{
		{http.MethodGet, "/v1/tasks/" + task.ID, ""},
		{http.MethodGet, "/v1/tasks/" + task.ID + "/events?follow=false", ""},
		{http.MethodPost, "/v1/tasks/" + task.ID + "/inject", `{"content":"psst"}`},
		{http.MethodPost, "/v1/tasks/" + task.ID + "/decisions", `{"id":"t","approved":true}`},
		{http.MethodPost, "/v1/tasks/" + task.ID + "/cancel", `{}`},
	} {
		if status, text := request("bob", c.method, c.path, c.body); status != http.StatusNotFound || !strings.Contains(text, "unknown_task") {
			t.Errorf("bob, %s %s: got %d and %s, want 404", c.method, c.path, status, text)
		}
		for _, token := range []string{"alice", "root"} {
			if status, text := request(token, c.method, c.path, c.body); status == http.StatusForbidden || status == http.StatusUnauthorized || status == http.StatusNotFound {
				t.Errorf("%s, %s %s: got %d and %s, want it allowed", token, c.method, c.path, status, text)
			}
		}
	}
	for _, c := range []struct{ method, path, body string }{
		{http.MethodGet, "/v1/usage", ""},
		{http.MethodGet, "/v1/events", ""},
		{http.MethodPatch, "/v1/agents/a", `{"max_concurrent":2}`},
	} {
		if status, text := request("alice", c.method, c.path, c.body); status != http.StatusForbidden {
			t.Errorf("not an operator, %s %s: got %d and %s, want 403", c.method, c.path, status, text)
		}
	}
	for path, hers := range map[string]string{"/v1/approvals": `"approvals":[]`, "/v1/questions": `"questions":[]`, "/v1/threads/hers": `"turns":[]`} {
		if status, text := request("bob", http.MethodGet, path, ""); status != http.StatusOK || !strings.Contains(text, hers) {
			t.Errorf("bob, GET %s: got %d and %s, want none of alice's", path, status, text)
		}
	}
}
