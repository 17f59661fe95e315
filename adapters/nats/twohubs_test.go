package nats_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// Two hubs that were given one name and one server: the second ends the tasks of the first,
// which it takes for its own of before. The first must not tell anything else as recorded.
func TestTwoHubsOfOneNameDoNotContradictEachOther(t *testing.T) {
	s := external(t)
	at := nats.Options{URL: s.ClientURL()}
	former := opened(t, at)
	opts := hub.Options{Journal: former}
	first := hub.New(opts)
	agent, asker := first.Connect(hub.Identity{Principal: core.Principal{ID: "a"}}), first.Connect(hub.Identity{Principal: core.Principal{ID: "r"}})
	if err := agent.Join(core.Card{ID: "a"}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	task, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go on"}, hub.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Report(task.ID(), core.ToolCall{ID: "1"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := task.Recorded(t.Context(), 3); err != nil {
		t.Fatal(err)
	}

	present := opened(t, at)
	second := hub.New(hub.Options{Journal: present})
	if err := second.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := agent.Report(task.ID(), core.Done{}, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		select {
		case <-former.Deposed():
		case <-time.After(watchdog):
		}
		cancel()
	}()
	told := task.Recorded(ctx, 4)
	events, err := present.Read(t.Context(), task.ID(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if end := events[len(events)-1].Body.Kind(); told == nil || end != core.KindFailed || !errors.Is(former.Health(), journal.ErrFenced) {
		t.Errorf("got %v for the end that the first hub recorded, while the journal says %s; the first journal says %v", told, end, former.Health())
	}
	for _, h := range []*hub.Hub{first, second} {
		if err := h.Close(t.Context(), "the test ends"); h == second && err != nil {
			t.Errorf("the second hub: got %v, want it to close", err)
		}
	}
}
