package control

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a control plane in a bubble of fake time, and an agent that answers in
// capitals, fails when it is asked to "fail" and waits when it is asked to "wait".
type stage struct {
	*testing.T
	hub     *hub.Hub
	control *Control
}

func onStage(t *testing.T, opts Options, play func(*stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, hub: coretest.NewHub(t, hub.Options{ID: "hub1"})}
		opts.Principal = func(r *http.Request) core.Principal {
			if id := r.Header.Get("X-User"); id != "" {
				return core.Principal{ID: id, Authenticated: true}
			}
			return core.Principal{ID: "local", Operator: true}
		}
		s.control = New(s.hub, opts)
		agent := s.hub.Connect(hub.Identity{Principal: core.Principal{ID: "shout"}, Dialect: "parallax"})
		card := core.Card{ID: "shout", Name: "Shout", Dialect: "parallax", Capabilities: []string{"shouting"}, Features: core.FeatureCancellation, MaxConcurrent: 4}
		card.Metadata = map[string]json.RawMessage{"region": json.RawMessage(`"eu"`)}
		if err := agent.Join(card, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go s.work(ctx, agent)
		defer func() {
			over, cut := context.WithCancel(t.Context())
			cut()
			s.control.Close(over)
			agent.Close(core.NewFault(core.CodeUnreachable, "the test is over"))
			cancel()
			synctest.Wait()
		}()
		play(s)
	})
}

func (s *stage) work(ctx context.Context, agent *hub.Session) {
	for {
		b, err := agent.Next(ctx)
		if err != nil {
			return
		}
		for _, e := range b.Events {
			var said core.Body
			switch e.Body.(type) {
			case core.Assigned:
				switch text := b.Task.Request().Content; text {
				case "wait":
					continue
				case "fail":
					said = core.Failed{Fault: core.NewFault(core.CodeInternal, "no idea")}
				default:
					_ = agent.Report(b.Task.ID(), core.Text{Text: strings.ToUpper(text)}, nil) // the end says how it went
					said = core.Done{}
				}
			case core.CancelRequested:
				said = core.Cancelled{Reason: "as it was asked"}
			default:
				continue
			}
			if err := agent.Report(b.Task.ID(), said, nil); err != nil {
				s.Error(err)
			}
		}
	}
}

// call makes a request and returns the status and the body.
func (s *stage) call(method, path, body string, headers ...string) (int, string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.control.ServeHTTP(w, r)
	synctest.Wait()
	return w.Code, w.Body.String()
}

// get is a call that has to succeed, and its answer.
func get[V any](s *stage, want int, method, path, body string) (v V) {
	s.Helper()
	code, text := s.call(method, path, body)
	if code != want {
		s.Fatalf("%s %s: got %d %s, want %d", method, path, code, text, want)
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		s.Fatalf("%s %s: got %s: %v", method, path, text, err)
	}
	return v
}
