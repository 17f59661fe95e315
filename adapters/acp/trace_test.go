package acp_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// The trace contexts of requesters and of connections.
const (
	traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ofUpgrade   = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
)

// askIn asks in a trace.
func (s *setup) askIn(p *hub.Session, r core.Request, in core.Trace) {
	s.Helper()
	if _, err := p.Open(r, hub.OpenOptions{Trace: in}); err != nil {
		s.Fatalf("asking: got %v, want no error", err)
	}
}

func TestTheTraceOfARequestIsThatOfItsPayload(t *testing.T) {
	query := `{"id":"%s","kind":"query","to":"fam","payload":{"question":"?"%s}}`
	for name, c := range map[string]struct {
		payload string
		want    core.Trace
	}{
		"one":                       {`,"traceparent":"` + traceparent + `","tracestate":"a=b"`, core.Trace{Parent: traceparent, State: "a=b"}},
		"none":                      {``, core.Trace{Parent: ofUpgrade, State: "c=d"}},
		"malformed":                 {`,"traceparent":"00-1-2-01","tracestate":"a=b"`, core.Trace{Parent: ofUpgrade, State: "c=d"}},
		"of another type":           {`,"traceparent":7,"tracestate":[]`, core.Trace{Parent: ofUpgrade, State: "c=d"}},
		"with a malformed state":    {`,"traceparent":"` + traceparent + `","tracestate":"\u0000"`, core.Trace{Parent: traceparent}},
		"with a state that is long": {`,"traceparent":"` + traceparent + `","tracestate":"a=` + strings.Repeat("b", 512) + `"`, core.Trace{Parent: traceparent}},
	} {
		t.Run(name, func(t *testing.T) {
			withHub(t, func(t *testing.T, s *setup) {
				fam := s.agent("fam", `{"extensions":["trace_context"]}`)
				conn, ended := s.connect(acp.Options{AgentID: "kit", Trace: core.Trace{Parent: ofUpgrade, State: "c=d"}})
				kit := &peer{setup: s, conn: conn, ended: ended, name: "kit"}
				kit.expect(wire.KindDiscover)
				kit.send(query, "q1", c.payload)
				if got := fam.expect(wire.KindQuery).Trace(); got != c.want {
					t.Errorf("got %+v, want %+v", got, c.want)
				}
			})
		})
	}
}

func TestOnlyAnAgentThatDeclaredItGetsTheTraceOfItsTask(t *testing.T) {
	for _, declared := range []bool{true, false} {
		withHub(t, func(t *testing.T, s *setup) {
			capabilities := `{"max_concurrent_tasks":9}`
			if declared {
				capabilities = `{"max_concurrent_tasks":9,"extensions":["trace_context"]}`
			}
			fam, rest := s.agent("fam", capabilities), s.plainSession("rest")
			for _, r := range []core.Request{
				{Content: "?"},
				{Intent: core.IntentDelegate, Content: "do"},
				{Intent: core.IntentNotify, Notice: &core.Notice{Topic: "a.b"}},
			} {
				r.To = core.ToAgent("fam")
				s.askIn(rest, r, core.Trace{Parent: traceparent, State: "a=b"})
				got, want := fam.next(), core.Trace{}
				if declared {
					want = core.Trace{Parent: traceparent, State: "a=b"}
				}
				if of := got.Trace(); of != want {
					t.Errorf("declared %t, %s: got the trace %+v, want %+v", declared, got.Kind, of, want)
				}
			}
		})
	}
}

// Between two ACP peers an unknown member passes (promise P11). One that the agent declared to know
// is the hub's: the span of the task.
func TestTheTraceOfAnACPPeerPassesUnlessTheAgentDeclaredIt(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit := s.peer("kit")
		plain := s.agent("fam", `{"max_concurrent_tasks":9}`)
		sent := `{"id":"q1","kind":"query","to":"fam","payload":{"traceparent":"made up","question":"?","tracestate":"a=b"}}`
		kit.send("%s", sent)
		if got := plain.expect(wire.KindQuery); !bytes.Contains(got.Payload, []byte(`{"traceparent":"made up","question":"?","tracestate":"a=b"}`)) {
			t.Errorf("not declared: got %s, want the payload that was sent", got.Payload)
		}
		traced := s.agent("eve", `{"max_concurrent_tasks":9,"extensions":["trace_context"]}`)
		kit.send(`{"id":"q2","kind":"query","to":"eve","payload":{"traceparent":"%s","question":"?","tracestate":"","more":1}}`, traceparent)
		if got, want := string(traced.expect(wire.KindQuery).Payload), `{"traceparent":"`+traceparent+`","question":"?","more":1}`; got != want {
			t.Errorf("declared: got %s, want %s", got, want)
		}
		kit.send(`{"id":"n1","kind":"negotiate","to":"eve","payload":{"more":1}}`)
		if got := string(traced.next().Payload); got != `{"more":1}` {
			t.Errorf("a kind that the hub does not know: got %s, want the payload that was sent", got)
		}
	})
}

func TestTheTraceOfAPostIsThatOfItsHeaders(t *testing.T) {
	s := newServer(t, acp.HTTPOptions{})
	fam := s.peer("fam")
	fam.send(`{"id":"c1","kind":"capabilities","payload":{"max_concurrent_tasks":9,"extensions":["trace_context"]}}`)
	fam.send(`{"id":"p1","kind":"ping"}`)
	fam.expect(wire.KindPong)
	for payload, want := range map[string]string{``: ofUpgrade, `,"traceparent":"` + traceparent + `"`: traceparent} {
		body := `{"id":"` + core.NewID() + `","kind":"delegate","to":"fam","payload":{"task":"?"` + payload + `}}`
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"X-Agent-Id": {"kit"}, "Traceparent": {ofUpgrade}}
		res, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if got := fam.expect(wire.KindDelegate).Trace().Parent; got != want {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
}
