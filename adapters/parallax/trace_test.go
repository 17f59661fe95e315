package parallax_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

const (
	traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ofUpgrade   = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
	traced      = `{"capabilities":["x"],"config":{"maxConcurrentTasks":9,"extensions":["trace_context"]}}`
)

func TestTheTraceOfATaskRequestIsInItsMetadata(t *testing.T) {
	for name, c := range map[string]struct {
		metadata string
		want     core.Trace
	}{
		"one":             {`,"metadata":{"traceparent":"` + traceparent + `","tracestate":"a=b"}`, core.Trace{Parent: traceparent, State: "a=b"}},
		"none":            {``, core.Trace{Parent: ofUpgrade}},
		"malformed":       {`,"metadata":{"traceparent":"00-1-2-01"}`, core.Trace{Parent: ofUpgrade}},
		"of another type": {`,"metadata":{"traceparent":1,"tracestate":{}}`, core.Trace{Parent: ofUpgrade}},
		"no object":       {`,"metadata":"` + traceparent + `"`, core.Trace{Parent: ofUpgrade}},
		"a state that is malformed": {
			`,"metadata":{"traceparent":"` + traceparent + `","tracestate":"\u0000"}`, core.Trace{Parent: traceparent},
		},
	} {
		t.Run(name, func(t *testing.T) {
			withHub(t, func(s *setup) {
				asker := s.registered(parallax.Options{AgentID: "asker", Trace: core.Trace{Parent: ofUpgrade}}, full)
				worker := s.registered(parallax.Options{AgentID: "worker"}, traced)
				asker.send(`{"type":"task_request","id":"q1","payload":{"to":"worker","input":{"content":"x"}` + c.metadata + `}}`)
				task := decode[wire.Task](worker, worker.receive(wire.TypeTask))
				if got := task.Trace(); got != c.want {
					t.Errorf("got %+v, want %+v", got, c.want)
				}
				worker.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK"}}`, task))
			})
		})
	}
}

func TestOnlyAnAgentThatDeclaredItGetsTheTraceOfItsTask(t *testing.T) {
	for registration, want := range map[string]string{traced: `{"traceparent":"` + traceparent + `","tracestate":"a=b"}`, full: ``} {
		withHub(t, func(s *setup) {
			worker := s.registered(parallax.Options{AgentID: "worker"}, registration)
			s.askIn(core.Trace{Parent: traceparent, State: "a=b"}, "worker")
			task := decode[wire.Task](worker, worker.receive(wire.TypeTask))
			if got := string(task.Metadata); got != want {
				t.Errorf("%s: got the metadata %s, want %s", registration, got, want)
			}
			worker.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK"}}`, task))
		})
	}
}

// askIn asks an agent in a trace.
func (s *setup) askIn(in core.Trace, agent core.AgentID) {
	s.Helper()
	rest := s.hub.Connect(hub.Identity{Principal: core.Principal{ID: "rest"}, Dialect: "rest", Keep: true})
	s.Cleanup(func() { rest.Close(nil) })
	if _, err := rest.Open(core.Request{To: core.ToAgent(agent), Content: "x"}, hub.OpenOptions{Trace: in, Unwatched: true}); err != nil {
		s.Fatal(err)
	}
}

// Between two Parallax peers an unknown member passes (promise P11). One that the agent declared to
// know is the hub's: the span of the task.
func TestTheTraceOfAParallaxPeerPassesUnlessTheAgentDeclaredIt(t *testing.T) {
	for registration, want := range map[string]string{
		traced: `{"lane":[1],"traceparent":"` + traceparent + `"}`,
		full:   `{"lane":[1],"traceparent":"` + traceparent + `","tracestate":"\u0000"}`,
	} {
		withHub(t, func(s *setup) {
			asker := s.registered(parallax.Options{AgentID: "asker"}, full)
			worker := s.registered(parallax.Options{AgentID: "worker"}, registration)
			asker.send(`{"type":"task_request","id":"q1","payload":{"to":"worker","input":"x","metadata":{"lane":[1],"traceparent":"` + traceparent + `","tracestate":"\u0000"}}}`)
			task := decode[wire.Task](worker, worker.receive(wire.TypeTask))
			if diff := cmp.Diff(fromJSON(t, json.RawMessage(want)), fromJSON(t, task.Metadata)); diff != "" {
				t.Errorf("%s: metadata (-want +got):\n%s", registration, diff)
			}
			worker.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK"}}`, task))
		})
	}
}

func TestAnAgentOfTheGatewayGetsTheTraceOfItsTaskIfItDeclaredIt(t *testing.T) {
	for declared, want := range map[string]string{"task_progress trace_context": `{"traceparent":"` + traceparent + `"}`, "": ""} {
		withHub(t, func(s *setup) {
			conn := s.gatewayWith(parallax.Options{}, map[string]string{"extensions": declared})
			s.askIn(core.Trace{Parent: traceparent}, "edge")
			m, err := conn.Receive(s.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := m.GetTaskRequest().GetContext()["metadata"]; got != want {
				t.Errorf("declared %q: got %q, want %q", declared, got, want)
			}
		})
	}
}
