package coven_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// An agent sends 50,000 chunks to a requester that reads nothing for five seconds.
// Meanwhile others are asked, answer and call tools without delay. Then every chunk is
// there, in order.
func TestAFloodForASlowReaderLosesNothingAndDelaysNobody(t *testing.T) {
	const chunks, questions = 50_000, 100
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		flooder, _ := join(t, h, coven.Options{}, "flooder", "max_concurrent=2")
		quiet, _ := join(t, h, coven.Options{}, "quiet")
		sleeper, other := ask(t, h), ask(t, h)
		task := sleeper.question("flooder", "talk")
		id := flooder.prompt().GetRequestId()
		start := time.Now()
		for i := range chunks {
			flooder.text(id, fmt.Sprintf("%05d ", i))
			if i%(chunks/questions) != 0 {
				continue
			}
			next := other.question("quiet", "and you?")
			quiet.call("c", "agents_list", "{}")
			for range 2 { // the question and the result, in either order
				m := quiet.receive()
				if p := m.GetSendMessage(); p != nil {
					quiet.done(p.GetRequestId(), "fine")
				}
			}
			other.until(next, core.KindDone)
			// The flooding agent itself is not delayed either.
			more := other.question("flooder", "how much is left?")
			flooder.done(flooder.prompt().GetRequestId(), "a lot")
			other.until(more, core.KindDone)
			flooder.call("c", "agents_list", "{}")
			if r := flooder.result(); r.GetOutputJson() == "" {
				t.Fatalf("got %v, want the list of agents", r)
			}
		}
		flooder.done(id, "")
		if took := time.Since(start); took != 0 {
			t.Errorf("it took %v, want no wait for the slow reader", took)
		}
		after(5 * time.Second)
		var got strings.Builder
		for end := false; !end; {
			b, err := sleeper.s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range b.Events {
				if text, ok := e.Body.(core.Text); ok {
					got.WriteString(text.Text)
				}
				end = end || e.Body.Kind().Ends()
			}
		}
		var want strings.Builder
		for i := range chunks {
			fmt.Fprintf(&want, "%05d ", i)
		}
		if got.String() != want.String() {
			t.Errorf("got %d bytes, want all %d in order", got.Len(), want.Len())
		}
		if task.Answer().End != core.KindDone {
			t.Errorf("got it ended as %s, want done", task.Answer().End)
		}
		flooder.hangUp()
		quiet.hangUp()
	})
}
