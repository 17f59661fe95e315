package pi_test

import (
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

const (
	traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ofUpgrade   = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
)

func TestTheTraceOfAPromptIsInItsFieldsElseThatOfItsConnection(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	traces := make(chan core.Trace, 1)
	joinAgent(t, h, core.Card{ID: "x"}, func(a *testAgent, b hub.Batch) {
		if assigned(b) {
			traces <- b.Task.Trace().Carried()
			a.report(b.Task, core.Done{})
		}
	})
	c := dial(t, s, pi.ConnOptions{Trace: core.Trace{Parent: ofUpgrade, State: "c=d"}})
	c.open("s", "x")
	for fields, want := range map[string]core.Trace{
		`,"traceparent":"` + traceparent + `","tracestate":"a=b"`:    {Parent: traceparent, State: "a=b"},
		`,"traceparent":"` + traceparent + `","tracestate":"\u0001"`: {Parent: traceparent},
		`,"traceparent":"00-1-2-01","tracestate":"a=b"`:              {Parent: ofUpgrade, State: "c=d"},
		`,"traceparent":1`: {Parent: ofUpgrade, State: "c=d"},
		``:                 {Parent: ofUpgrade, State: "c=d"},
	} {
		c.ok(`{"type":"prompt","sessionId":"s","message":"?"` + fields + `}`)
		if got := <-traces; got != want {
			t.Errorf("%s: got %+v, want %+v", fields, got, want)
		}
	}
}

func TestTheTraceOfAMessageThatWaitsIsItsOwn(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	traces, goOn := make(chan core.Trace, 2), make(chan struct{})
	joinAgent(t, h, core.Card{ID: "x"}, func(a *testAgent, b hub.Batch) {
		if assigned(b) {
			traces <- b.Task.Trace()
			<-goOn
			a.report(b.Task, core.Done{})
		}
	})
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "x")
	c.send(`{"type":"prompt","sessionId":"s","message":"?"}`)
	if got := <-traces; got != (core.Trace{}) {
		t.Errorf("the prompt: got %+v, want none", got)
	}
	c.ok(`{"type":"follow_up","sessionId":"s","message":"and?","traceparent":"` + traceparent + `"}`)
	close(goOn)
	if got := (<-traces).Parent; got != traceparent {
		t.Errorf("the message that waited: got %q, want %q", got, traceparent)
	}
}
