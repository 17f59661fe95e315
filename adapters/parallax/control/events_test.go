package control_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/parallax/control"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/webhook"
)

func TestEventsAreStreamedToTheEndAndResumed(t *testing.T) {
	withControl(t, control.Options{}, func(f *fixture) {
		b := f.start(`{"capability":"shouting","input":"hello"}`)
		path := "/api/executions/" + string(b.ID) + "/events"
		_, text := f.call("GET", path+"/stream", "")
		var got, ids []string
		for line := range strings.Lines(text) {
			if name, ok := strings.CutPrefix(line, "event: "); ok {
				got = append(got, strings.TrimSpace(name))
			}
			if id, ok := strings.CutPrefix(line, "id: "); ok {
				ids = append(ids, strings.TrimSpace(id))
			}
		}
		want := []string{"connected", "started", "agent_started", "progress", "agent_completed", "completed"}
		if diff := cmp.Diff(want, got); diff != "" {
			f.Errorf("the stream differs (-want +got):\n%s", diff)
		}
		if _, rest := f.call("GET", path+"/stream", "", "Last-Event-ID", ids[1]); strings.Contains(rest, "agent_started") || !strings.Contains(rest, "event: completed") {
			f.Errorf("resumed after %s: got %s, want the rest", ids[1], rest)
		}
		if code, _ := f.call("GET", path+"/stream", "", "Last-Event-ID", ids[len(ids)-1]); code != 204 {
			f.Errorf("resumed after the end: got %d, want 204", code)
		}
		if all := get[struct{ Events []json.RawMessage }](f, 200, "GET", path, ""); len(all.Events) != len(want)-1 {
			f.Errorf("got %d events, want %d", len(all.Events), len(want)-1)
		}
	})
}

func TestEventsThatAreNoLongerKeptAreReportedAsAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{T: t, hub: coretest.NewHub(t, hub.Options{
			Journal: journal.NewMemory(journal.Retention{Bytes: 20_000}), Limits: hub.Limits{FinishedTasks: 1},
		})}
		operator := core.Principal{ID: "local", Operator: true}
		f.control = control.New(f.hub, control.Options{Targets: webhook.TargetsNone, Principal: func(*http.Request) core.Principal { return operator }})
		agent, asker := f.hub.Connect(hub.Identity{Principal: core.Principal{ID: "a"}}), f.hub.Connect(hub.Identity{Principal: operator})
		defer agent.Close(nil)
		defer asker.Close(nil)
		if err := agent.Join(core.Card{ID: "a"}, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		long, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{Unwatched: true})
		if err != nil {
			t.Fatal(err)
		}
		for range 40 {
			if err := agent.Report(long.ID(), core.Thinking{Text: strings.Repeat("x", 900)}, nil); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // so that each has a record of its own
		}
		if err := agent.Report(long.ID(), core.Done{}, nil); err != nil {
			t.Fatal(err)
		}
		for range 10 { // so that the first task leaves memory
			other, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "another"}, hub.OpenOptions{Unwatched: true})
			if err != nil || agent.Report(other.ID(), core.Done{}, nil) != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // until it is recorded
		}
		_, text := f.call("GET", "/api/executions/"+string(long.ID())+"/events/stream", "")
		if !strings.Contains(text, "event: gap\n") || !strings.Contains(text, `"from":1,`) || !strings.Contains(text, "event: completed") {
			t.Errorf("got %.600s, want a gap, and the rest", text)
		}
		if _, text := f.call("GET", "/api/executions/"+string(long.ID())+"/events", ""); !strings.Contains(text, `"type":"gap"`) {
			t.Errorf("got %.300s, want a gap among the events", text)
		}
	})
}
