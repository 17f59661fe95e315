package a2a_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/a2a"
	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// FuzzServer checks that no request makes the server panic, that each is answered, and that every
// answer is JSON or a stream of JSON.
func FuzzServer(f *testing.F) {
	for path, body := range map[string]string{
		"/a2a/shout":                              `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":` + message("m", "hi", "") + `}`,
		"/a2a":                                    `{"jsonrpc":"2.0","id":"x","method":"SendStreamingMessage","params":{"tenant":"shout","message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":{"approval":{"id":1}}},{"raw":"aGk="}]}}}`,
		"/a2a/shout/rest/message:stream":          message("m", "hi", `,"contextId":"c","metadata":{"a":1}`),
		"/a2a/shout/rest/tasks/x:subscribe":       `{"metadata":{"urn:dragoman:a2a:cursor:1":"1.2:1"}}`,
		"/a2a/shout/rest/shout/tasks?pageSize=2":  ``,
		"/a2a/a%2Fb//.well-known/agent-card.json": ``,
	} {
		f.Add(path, body, body == "")
	}
	f.Fuzz(func(t *testing.T, path, body string, get bool) {
		u, err := url.Parse(path)
		if err != nil || u.Host != "" || !strings.HasPrefix(path, "/") {
			return
		}
		h := coretest.NewHub(t, hub.Options{})
		agent := h.Connect(hub.Identity{Principal: core.Principal{ID: "shout"}, Dialect: "test"})
		defer agent.Close(nil)
		if err := agent.Join(core.Card{ID: "shout", Dialect: "test", MaxConcurrent: 8}, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		stop := agent.Consume(context.Background(), func(b hub.Batch, err error) bool {
			for _, e := range b.Events {
				if _, ok := e.Body.(core.Assigned); ok {
					for _, body := range []core.Body{core.Text{Text: "HI"}, core.Done{}} {
						if err := agent.Report(b.Task.ID(), body, nil); err != nil {
							t.Error(err)
						}
					}
				}
			}
			return err == nil
		})
		defer stop()
		s := a2a.New(h, a2a.Options{Principal: func(*http.Request) (core.Principal, error) { return core.Principal{ID: "u"}, nil }})
		defer s.Close()
		method := http.MethodPost
		if get {
			method = http.MethodGet
		}
		r, err := http.NewRequestWithContext(t.Context(), method, "http://hub", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.URL.Path, r.URL.RawPath, r.URL.RawQuery = u.Path, u.RawPath, u.RawQuery
		r.Header.Set(wire.VersionHeader, wire.Version)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		for line := range strings.Lines(w.Body.String()) {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				line = data
			}
			if line = strings.TrimSpace(line); line != "" && line[0] != ':' && !json.Valid([]byte(line)) {
				t.Fatalf("got %d %s, want JSON", w.Code, w.Body)
			}
		}
		if w.Code == http.StatusInternalServerError {
			t.Fatalf("got %s, want an error that says what to change", w.Body)
		}
	})
}
