package client

import (
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
)

func TestAnAskerHearsAPartialResult(t *testing.T) {
	q := &ask{news: make(chan struct{}, 1)}
	w := &worker{asks: map[string]*ask{"ask_1": q}}
	m, err := wire.Decode([]byte(`{"type":"task_error","payload":{"requestId":"ask_1","error":{"code":"TIMEOUT","message":"late"},"partialResult":"half"}}`))
	if err == nil {
		err = w.take(t.Context(), m)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := core.Fold(bodiesAsEvents(q.heard)); got.Text != "half" || got.Fault == nil || got.Fault.Code != core.CodeTimeout {
		t.Errorf("got %+v, want half and a timeout", got)
	}
}

func bodiesAsEvents(bodies []core.Body) []core.Event {
	var events []core.Event
	for _, b := range bodies {
		events = append(events, core.Event{Seq: uint64(len(events) + 1), Body: b})
	}
	return events
}
