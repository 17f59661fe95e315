package control_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/adapters/parallax/control"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a control plane under a fake clock, and an agent that answers in capitals,
// fails when asked to "fail" and waits when asked to "wait".
type fixture struct {
	*testing.T
	hub     *hub.Hub
	control *control.Control
}

func withControl(t *testing.T, opts control.Options, test func(*fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{T: t, hub: coretest.NewHub(t, hub.Options{ID: "hub1"})}
		opts.Principal = func(r *http.Request) core.Principal {
			if id := r.Header.Get("X-User"); id != "" {
				return core.Principal{ID: id, Authenticated: true}
			}
			return core.Principal{ID: "local", Operator: true}
		}
		f.control = control.New(f.hub, opts)
		agent := f.hub.Connect(hub.Identity{Principal: core.Principal{ID: "shout"}, Dialect: "parallax"})
		card := core.Card{ID: "shout", Name: "Shout", Dialect: "parallax", Capabilities: []string{"shouting"}, Features: core.FeatureCancellation, MaxConcurrent: 4}
		card.Metadata = map[string]json.RawMessage{"region": json.RawMessage(`"eu"`)}
		if err := agent.Join(card, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go f.work(ctx, agent)
		defer func() {
			over, cut := context.WithCancel(t.Context())
			cut()
			f.control.Close(over)
			agent.Close(core.NewFault(core.CodeUnreachable, "the test is over"))
			cancel()
			synctest.Wait()
		}()
		test(f)
	})
}

func (f *fixture) work(ctx context.Context, agent *hub.Session) {
	for {
		b, err := agent.Next(ctx)
		if err != nil {
			return
		}
		for _, e := range b.Events {
			var end core.Body
			switch e.Body.(type) {
			case core.Assigned:
				switch text := b.Task.Request().Content; text {
				case "wait":
					continue
				case "fail":
					end = core.Failed{Fault: core.NewFault(core.CodeInternal, "no idea")}
				default:
					_ = agent.Report(b.Task.ID(), core.Text{Text: strings.ToUpper(text)}, nil) // an error comes with the end too
					end = core.Done{}
				}
			case core.CancelRequested:
				end = core.Cancelled{Reason: "as requested"}
			default:
				continue
			}
			if err := agent.Report(b.Task.ID(), end, nil); err != nil {
				f.Error(err)
			}
		}
	}
}

// call makes a request and returns the status and the body.
func (f *fixture) call(method, path, body string, headers ...string) (int, string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	f.control.ServeHTTP(w, r)
	synctest.Wait()
	return w.Code, w.Body.String()
}

// get makes a request, whose status must be want, and decodes the body.
func get[V any](f *fixture, want int, method, path, body string) (v V) {
	f.Helper()
	code, text := f.call(method, path, body)
	if code != want {
		f.Fatalf("%s %s: got %d %s, want %d", method, path, code, text, want)
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		f.Fatalf("%s %s: got %s: %v", method, path, text, err)
	}
	return v
}

// start starts an execution.
func (f *fixture) start(body string) accepted {
	f.Helper()
	return get[accepted](f, http.StatusAccepted, "POST", "/api/executions", body)
}

// execution returns an execution.
func (f *fixture) execution(id core.TaskID) execution {
	f.Helper()
	return get[execution](f, http.StatusOK, "GET", "/api/executions/"+string(id), "")
}

// What the tests read of the responses.
type (
	accepted struct {
		ID                core.TaskID `json:"id"`
		Status            string      `json:"status"`
		StreamURL         string      `json:"streamUrl"`
		WebhookConfigured bool        `json:"webhookConfigured"`
		RetryOf           core.TaskID `json:"retryOf"`
	}
	execution struct {
		PatternName string          `json:"patternName"`
		AgentID     core.AgentID    `json:"agentId"`
		EndTime     *time.Time      `json:"endTime"`
		Status      string          `json:"status"`
		Result      json.RawMessage `json:"result"`
		Error       string          `json:"error"`
		Code        string          `json:"code"`
		Metrics     struct {
			Success bool `json:"success"`
		} `json:"metrics"`
		Webhook *struct {
			Signed     bool      `json:"signed"`
			Deliveries []attempt `json:"deliveries"`
		} `json:"webhook"`
	}
	attempt struct {
		Outcome string `json:"outcome"`
		Status  int    `json:"responseStatus"`
		Error   string `json:"error"`
	}
	agentView struct {
		Name   string `json:"name"`
		Status string `json:"status"`
		Source string `json:"source"`
	}
)
