package native_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
)

func TestWhoReadsWhatIsNoLongerKeptIsToldOfTheGap(t *testing.T) {
	opts := hub.Options{Limits: hub.Limits{FinishedTasks: 1}, Journal: journal.NewMemory(journal.Retention{Bytes: 20_000})}
	withHubOf(t, opts, func(s *setup) {
		agent, asker, chief := s.agent(able("agent")), s.peer("asker"), s.peer("chief")
		from := text(chief.call(core.WatchAll{}, wire.With{Positions: true}).Get("position"))
		chief.Close()
		id := asker.open(ask("agent", "?"))
		for range 40 {
			agent.report(id, core.Thinking{Text: strings.Repeat("x", 900)})
		}
		agent.report(id, core.Done{})
		asker.take()
		for range 20 { // the hub drops what has ended from memory once the journal has it
			agent.report(asker.open(ask("agent", "?")), core.Done{})
			asker.take()
			<-time.After(time.Second)
		}

		reader := s.peer("reader")
		v := reader.call(core.Read{Task: id}, wire.With{Watch: true})
		if got := text(v.Get("status", "state")); got != "done" {
			t.Errorf("got %s, want the status before the gap", v.Raw())
		}
		gaps, rest := reader.others(), reader.take()
		var gap wire.Gap
		if len(gaps) == 1 {
			_, frame, _ := strings.Cut(gaps[0], " ")
			if err := json.Unmarshal([]byte(frame), &gap); err != nil {
				t.Fatal(err)
			}
		}
		if gap.Task != id || gap.Role != "viewer" || gap.Call == "" || gap.From != 1 || gap.To < 10 || len(rest) != 43-int(gap.To) || rest[len(rest)-1].Event.Body.Kind() != core.KindDone {
			t.Errorf("got the gap %v and %d events, want the gap from 1 and what comes after it", gaps, len(rest))
		}

		again := s.peer("again")
		again.call(core.WatchAll{}, wire.With{After: from})
		if got := again.others(); len(got) == 0 || !strings.HasPrefix(got[0], "gap {") || !strings.Contains(got[0], `"role":"viewer","call":"`) {
			t.Errorf("all tasks from a place that is gone: got %v, want a gap", got)
		}
	})
}

func TestASubscriberIsToldOfNoticesThatAreGone(t *testing.T) {
	withHubOf(t, hub.Options{Limits: hub.Limits{NoticeBytes: 2000}}, func(s *setup) {
		reader, asker := s.peer("reader"), s.peer("asker")
		reader.call(core.Subscribe{Topics: []string{"door.*"}}, wire.With{})
		reader.Close()
		synctest.Wait() // until the hub knows that it has gone
		for range 3 {
			asker.open(core.Request{Intent: core.IntentNotify, To: core.ToHub(), Notice: &core.Notice{Topic: "door.open", Data: json.RawMessage(`"` + strings.Repeat("x", 900) + `"`)}})
		}
		again := s.peer("reader")
		again.call(core.Subscribe{}, wire.With{Resume: true})
		if got, told := again.others(), again.take(); len(told) != 1 || !slices.Equal(got, []string{`gap {"role":"subscriber","from":1,"to":2}`}) {
			t.Errorf("got %v and %d notices, want a gap and the one that is kept", got, len(told))
		}
	})
}
