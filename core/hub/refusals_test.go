package hub_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
)

// Whatever a refused requester sends, and however often, the journal and the lists keep what others have stored.
func TestARefusedRequesterSpendsNothingOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const room = 256 << 10
		kept := journal.NewMemory(journal.Retention{Age: 7 * 24 * time.Hour, Bytes: room})
		g := &testHub{t, coretest.NewHub(t, hub.Options{Journal: kept})}
		g.agent("poet", 0)
		alice, mallory := g.connectAs(core.Principal{ID: "alice", Authenticated: true}), g.connectAs(core.Principal{ID: "mallory", Authenticated: true})
		done, err := alice.Open(core.Request{To: core.ToAgent("poet"), Content: "a poem"}, hub.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		long := strings.Repeat("x", room/8)
		known := 0
		for i := range 300 {
			refused, err := mallory.Open(core.Request{To: core.ToAgent("nobody"), Thread: core.ThreadID(fmt.Sprint(i)), Content: long, Data: []byte(`"` + long + `"`)}, hub.OpenOptions{})
			if !errors.Is(err, &core.Fault{Code: core.CodeUnknownAgent}) {
				t.Fatalf("request %d: got %v, want it refused", i, err)
			}
			if refused == nil {
				continue
			}
			known++
			if n := refused.Request().Size(); n > 1<<10 {
				t.Fatalf("request %d: got %d bytes of it kept, want none of its content", i, n)
			}
		}
		time.Sleep(time.Second) // by then all is recorded
		if known == 0 || known > 200 {
			t.Errorf("got %d of 300 refusals kept, want some and few", known)
		}
		if events, err := kept.Read(t.Context(), done.ID(), 0, 0); err != nil || len(events) == 0 {
			t.Errorf("the task of alice: got %d events in the journal and %v, want it there", len(events), err)
		}
		page, err := g.hub.Tasks(t.Context(), core.Principal{ID: "root", Operator: true}, task.Filter{From: "mallory", Limit: 1000})
		if err != nil || len(page.Tasks) != known {
			t.Errorf("got %d tasks of mallory in the list and %v, want the %d that are kept", len(page.Tasks), err, known)
		}
		time.Sleep(time.Minute)
		if refused, _ := mallory.Open(core.Request{To: core.ToAgent("nobody"), Content: "again"}, hub.OpenOptions{}); refused == nil {
			t.Error("a minute later: got a refusal that is not kept, want it kept")
		}
	})
}

func TestARequesterThatAsksAgainUntilAnAgentIsHereLeavesNoTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testHub{t, coretest.NewHub(t, hub.Options{})}
		alice := g.connect("alice")
		ask := func(content string, to core.Address) (*task.Task, error) {
			return alice.Open(core.Request{To: to, Content: content}, hub.OpenOptions{AsksAgain: true})
		}
		poet := core.ToAgent("poet")
		for to, want := range map[core.Address]core.Code{poet: core.CodeUnknownAgent, core.ToAny(): core.CodeUnknownAgent, core.ToDomain("tea"): core.CodeUnknownDomain} {
			if refused, err := ask("a poem", to); refused != nil || !errors.Is(err, &core.Fault{Code: want}) {
				t.Errorf("to %s: got %v and %v, want %s without a task", to, refused, err, want)
			}
		}
		if _, err := ask("", poet); !errors.Is(err, &core.Fault{Code: core.CodeInvalid}) {
			t.Errorf("an empty question: got %v, want %s at once", err, core.CodeInvalid)
		}
		g.agent("poet", 0)
		asked, err := ask("a poem", poet)
		if err != nil {
			t.Fatal(err)
		}
		page, err := g.hub.Tasks(t.Context(), core.Principal{ID: "root", Operator: true}, task.Filter{})
		if err != nil || len(page.Tasks) != 1 || page.Tasks[0].ID != asked.ID() {
			t.Errorf("got the tasks %+v and %v, want the one that an agent has got", page.Tasks, err)
		}
		if v := g.hub.Counters()["refused.unknown_agent"]; v != 2 {
			t.Errorf("got %d refusals counted, want 2", v)
		}
	})
}
