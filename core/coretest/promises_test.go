package coretest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// life is what the observer of a hub is told; tests break it.
type life struct {
	agents []core.Card
	tasks  map[core.TaskID][]core.Event
	order  []core.TaskID
	// recorded is what the journal is given; nil for everything.
	recorded map[core.TaskID][]core.Event
}

func (l *life) say(id core.TaskID, bodies ...core.Body) {
	if l.tasks[id] == nil {
		l.order = append(l.order, id)
	}
	for _, b := range bodies {
		l.tasks[id] = append(l.tasks[id], core.Event{Seq: uint64(len(l.tasks[id]) + 1), Epoch: 1, At: noon, Body: b})
	}
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func opening(id core.TaskID) core.Opened {
	return core.Opened{Task: id, From: core.Principal{ID: "r"}, Request: core.Request{To: core.ToAgent("a"), Content: "go", Deadline: noon.Add(time.Minute)}}
}

func goodLife() *life {
	l := &life{agents: []core.Card{{ID: "a", MaxConcurrent: 1}}, tasks: map[core.TaskID][]core.Event{}}
	l.say("t", opening("t"), core.Assigned{Agent: "a", Attempt: 1}, core.Text{Text: "one "}, core.Text{Text: "two"}, core.Done{})
	return l
}

// broken tells it to a checker and returns the promises that the checker found broken.
func (l *life) broken(t *testing.T) []string {
	opts := hub.Options{Journal: journal.NewMemory(journal.Retention{})}
	p := Watch(&opts)
	for _, c := range l.agents {
		p.Joined(c)
	}
	for longest, i := 1, 0; i < longest; i++ { // side by side
		for _, id := range l.order {
			if longest = max(longest, len(l.tasks[id])); i < len(l.tasks[id]) {
				p.Appended(id, l.tasks[id][i])
			}
		}
	}
	for _, id := range l.order {
		events, changed := l.recorded[id]
		if !changed {
			events = l.tasks[id]
		}
		for _, e := range events {
			if err := opts.Journal.Append(context.Background(), journal.Record{Task: id, Event: e}); err != nil {
				t.Fatal(err)
			}
		}
		p.Recorded(id, l.tasks[id][len(l.tasks[id])-1].End())
	}
	return p.Broken()
}

func TestTheCheckerFindsNothingWhereNothingIsBroken(t *testing.T) {
	if got := goodLife().broken(t); len(got) > 0 {
		t.Errorf("got %q, want nothing", got)
	}
}

func TestTheCheckerFindsEveryBrokenPromise(t *testing.T) {
	for name, c := range map[string]struct {
		promise string
		wrong   func(*life)
	}{
		"no end":               {"P1", func(l *life) { l.tasks["t"] = l.tasks["t"][:4] }},
		"two ends":             {"P1", func(l *life) { l.say("t", core.Done{}) }},
		"text behind the end":  {"P1", func(l *life) { l.say("t", core.Text{Text: "late"}) }},
		"a hole":               {"P2", func(l *life) { l.tasks["t"] = append(l.tasks["t"][:2:2], l.tasks["t"][3:]...) }},
		"text not recorded":    {"P3", func(l *life) { l.record("t", func(e []core.Event) { e[2].Body = core.Text{Text: "ONE"} }) }},
		"nothing recorded":     {"P5", func(l *life) { l.recorded = map[core.TaskID][]core.Event{"t": {}} }},
		"half of it recorded":  {"P5", func(l *life) { l.recorded = map[core.TaskID][]core.Event{"t": l.tasks["t"][:2]} }},
		"nobody asked":         {"P7", func(l *life) { l.tasks["t"][0].Body = core.Opened{Task: "t"} }},
		"an agent with two":    {"P8", func(l *life) { l.say("u", opening("u"), core.Assigned{Agent: "a", Attempt: 1}, core.Done{}) }},
		"an uninvited context": {"P8", func(l *life) { l.tasks["t"][3].Body = core.Injected{ID: "i", Content: "psst"} }},
		"an end too late":      {"P9", func(l *life) { l.tasks["t"][4].At = noon.Add(time.Hour) }},
		"a cause that never was": {"P10", func(l *life) {
			o := opening("t")
			o.Request.Cause = "nowhere"
			l.tasks["t"][0].Body = o
		}},
		"an agent below itself": {"P10", func(l *life) {
			o := opening("t")
			o.Chain = []core.AgentID{"a"}
			l.tasks["t"][0].Body = o
		}},
		"a foreign field lost": {"P11", func(l *life) {
			l.tasks["t"][3].Foreign = &core.Foreign{Dialect: "x", JSON: json.RawMessage(`{"a":1}`)}
			l.record("t", func(e []core.Event) { e[3].Foreign = &core.Foreign{Dialect: "x", JSON: json.RawMessage(`{}`)} })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l := goodLife()
			c.wrong(l)
			got := l.broken(t)
			if !strings.Contains(strings.Join(got, "\n"), "promise "+c.promise+" is broken") {
				t.Errorf("got %q, want %s broken", got, c.promise)
			}
		})
	}
}

// record changes what the journal has of a task.
func (l *life) record(id core.TaskID, change func([]core.Event)) {
	events := append([]core.Event(nil), l.tasks[id]...)
	change(events)
	l.recorded = map[core.TaskID][]core.Event{id: events}
}

func TestTheCheckerFindsAReaderThatMissedSomething(t *testing.T) {
	l := goodLife()
	p := &Promises{eager: &reading{tasks: map[core.TaskID]*account{"t": {}}}}
	log := &history{}
	for i, e := range l.tasks["t"] {
		log.add(e)
		if i != 3 {
			if hole := p.eager.tasks["t"].add(e); hole != "" {
				p.eager.holes = append(p.eager.holes, hole)
			}
		}
	}
	p.compareReaders("t", log)
	got := strings.Join(p.broken, "\n")
	for _, want := range []string{"promise P5", "promise P3", "eager"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
}

func TestTheCheckerFindsAReceiptThatRanAheadOfFact(t *testing.T) {
	opts := hub.Options{}
	p := Watch(&opts)
	p.Appended("t", core.Event{Seq: 1, Epoch: 1, At: noon, Body: opening("t")})
	p.Recorded("t", 2)
	p.Recorded("u", 1)
	if got := strings.Join(p.Broken(), "\n"); strings.Count(got, "promise P4 is broken") != 2 {
		t.Errorf("got %q, want P4 broken twice", got)
	}
}

func TestTheCheckerFindsAnAgentThatLeftWithATask(t *testing.T) {
	opts := hub.Options{}
	p := Watch(&opts)
	p.Joined(core.Card{ID: "a", MaxConcurrent: 1})
	for i, b := range []core.Body{opening("t"), core.Assigned{Agent: "a", Attempt: 1}} {
		p.Appended("t", core.Event{Seq: uint64(i + 1), Epoch: 1, At: noon, Body: b})
	}
	p.Left("a", false)
	if got := strings.Join(p.Broken(), "\n"); !strings.Contains(got, "promise P8 is broken: task t: agent a has left") {
		t.Errorf("got %q, want P8 broken", got)
	}
}
