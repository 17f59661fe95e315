package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/quota"
	"github.com/dragoman-hub/dragoman/core/task"
)

const (
	asSSE   = "Accept: text/event-stream"
	asLines = "Accept: application/x-ndjson"
)

func TestTheEventsOfANewTaskStartWithTheFirst(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	r := g.follow(http.MethodPost, "/v1/tasks", `{"to":"a","content":"hi"}`, asSSE)
	if got := r.resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("got Content-Type %q, want text/event-stream", got)
	}
	task := a.accept()
	if got, want := r.resp.Header.Get("Location"), "/v1/tasks/"+string(task.ID()); got != want {
		t.Errorf("got Location %q, want %q", got, want)
	}
	all := r.until(core.KindAssigned)
	a.report(task, core.Thinking{Text: "hm"}, core.Text{Text: "a\nb"}, core.Done{})
	all = append(all, r.rest()...)
	if got, want := kinds(all), "opened assigned thinking text done"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for i, e := range all {
		if e.Seq != uint64(i+1) {
			t.Errorf("got sequence %d at index %d, want %d", e.Seq, i, i+1)
		}
	}
	if got := core.Fold(all).Text; got != "a\nb" {
		t.Errorf("got text %q, want it whole", got)
	}
}

func TestEveryKindHasTheFormInTheOpenAPIDocument(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	r := g.follow(http.MethodPost, "/v1/tasks", `{"to":"a","content":"hi","data":1,"context":{},"domain":"d","attachments":[{"name":"n","data":""}]}`, asSSE)
	task := a.accept()
	a.report(task, core.Accepted{Estimate: time.Second}, core.SessionStarted{Session: "s"}, core.SessionLost{Reason: "r"}, core.Thinking{Text: "t"},
		core.ToolCall{ID: "c", Name: "n", Input: "{"}, core.ToolState{ID: "c", State: core.ToolRunning, Detail: "d"}, core.ToolResult{ID: "c", Output: "o", IsError: true},
		core.File{Name: "f", Data: []byte{0, 255}}, core.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Thinking: 5}, core.ApprovalRequested{ID: "c2", Name: "n", Input: "{}"})
	if err := a.s.Report(task.ID(), core.ForeignFrame{Dialect: "test", Name: "x"}, &core.Foreign{Dialect: "test", JSON: json.RawMessage(`{"k":[1]}`), Wire: []byte{1}}); err != nil {
		t.Fatal(err)
	}
	path := "/v1/tasks/" + string(task.ID())
	g.post(path+"/inject", `{"id":"i","content":"psst","source":"system"}`).into(http.StatusAccepted, &struct{}{})
	g.post(path+"/decisions", `{"id":"c2","approved":true,"all":true,"reason":"fine"}`).into(http.StatusOK, &struct{}{})
	a.report(task, core.InjectionAnswered{ID: "i", Accepted: true, Reason: "r"}, core.Text{Text: "<&>\u2028"}, core.ToolResult{ID: "c2"}, core.Done{Text: "x", Data: json.RawMessage(`null`), Truncated: true, TokensUsed: 9})
	all := r.rest()
	want := "opened assigned accepted session_started session_lost thinking tool_call tool_state tool_result file usage approval_requested " +
		"foreign injected approval_decided injection_answered text tool_result done"
	if got := kinds(all); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if diff := cmp.Diff(encoded(task.Events()), encoded(all)); diff != "" {
		t.Errorf("events (-hub +received):\n%s", diff)
	}
}

// encoded returns events in their stable JSON form, for comparison.
func encoded(events []core.Event) []string {
	var out []string
	for _, e := range events {
		b, _ := json.Marshal(e)
		out = append(out, string(b))
	}
	return out
}

func TestLinesHaveTheSameEventsAsTheEventStream(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	r := g.follow(http.MethodPost, "/v1/tasks", `{"to":"a","content":"hi"}`, asLines)
	if got := r.resp.Header.Get("Content-Type"); got != "application/x-ndjson" {
		t.Errorf("got Content-Type %q, want application/x-ndjson", got)
	}
	task := a.accept()
	a.report(task, core.Text{Text: "a"}, core.Done{})
	var events []core.Event
	for l, ok := r.nextLine(); ok; l, ok = r.nextLine() {
		if l.Cursor != l.Event.Cursor().String() || l.Task != "" {
			t.Errorf("got cursor %q and task %q, want %s and none", l.Cursor, l.Task, l.Event.Cursor())
		}
		events = append(events, l.Event)
	}
	if diff := cmp.Diff(encoded(task.Events()), encoded(events)); diff != "" {
		t.Errorf("events (-hub +received):\n%s", diff)
	}
}

func TestReconnectLosesOrRepeatsEvents(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	id := g.opened(`{"to":"a","content":"hi"}`)
	task := a.accept()
	for i := range 50 {
		a.report(task, core.Text{Text: fmt.Sprint(i, " ")})
	}
	// Resume after every event, with both parameters, while the task runs and afterwards.
	whole := task.Events()
	for i, e := range whole {
		want := kinds(whole[i+1:])
		if got := kinds(g.events(id, "?follow=false&from="+e.Cursor().String()).rest()); got != want {
			t.Errorf("from %s while it runs: got %s, want %s", e.Cursor(), got, want)
		}
	}
	live := g.events(id, "?from=1.20")
	a.report(task, core.Text{Text: "end"}, core.Done{})
	whole = task.Events()
	if diff := cmp.Diff(encoded(whole[20:]), encoded(live.rest())); diff != "" {
		t.Errorf("a reader that stayed connected (-hub +received):\n%s", diff)
	}
	for i, e := range whole[:len(whole)-1] {
		again := g.events(id, "?from=1.1", "Last-Event-ID: "+e.Cursor().String())
		if diff := cmp.Diff(encoded(whole[i+1:]), encoded(again.rest())); diff != "" {
			t.Errorf("from %s (-hub +received):\n%s", e.Cursor(), diff)
		}
	}
}

func TestACursorAtTheEndIsAnsweredByNoContent(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	id := g.opened(`{"to":"a","content":"hi"}`)
	a.report(a.accept(), core.Done{})
	end := g.ended(id).Cursor().String()
	for _, form := range []string{asSSE, asLines} {
		if got := g.get("/v1/tasks/"+string(id)+"/events", "Last-Event-ID: "+end, form); got.status != http.StatusNoContent || len(got.body) > 0 {
			t.Errorf("got status %d with %q, want %d", got.status, got.body, http.StatusNoContent)
		}
	}
}

func TestFollowFalseEndsWithTheLatestEvent(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	id := g.opened(`{"to":"a","content":"hi"}`)
	task := a.accept()
	a.report(task, core.Text{Text: "a"})
	if got, want := kinds(g.events(id, "?follow=false").rest()), "opened assigned text"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := kinds(g.events(id, "?follow=false&from=1.3").rest()); got != "" {
		t.Errorf("after the last event: got %s, want nothing", got)
	}
	a.report(task, core.Done{})
}

func TestAnInvalidCursorIsRefused(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	id := g.opened(`{"to":"a","content":"hi"}`)
	path := "/v1/tasks/" + string(id) + "/events"
	for _, from := range []string{"x", "3", "1.99", "7.1", "-1.1"} {
		g.get(path+"?from="+from).refused(http.StatusBadRequest, core.CodeInvalid, "cursor", from)
	}
	g.get(path+"?follow=perhaps").refused(http.StatusBadRequest, core.CodeInvalid, "follow")
	a.report(a.accept(), core.Done{})
}

func TestEventsThatAreNoLongerKeptAreAGap(t *testing.T) {
	limits := hub.Limits{FinishedTasks: 1}
	kept := journal.NewMemory(journal.Retention{Bytes: 20_000})
	g := start(t, hub.Options{Limits: limits, Journal: kept}, rest.Options{})
	a := g.agent("a")
	id := g.opened(`{"to":"a","content":"hi"}`)
	task := a.accept()
	for i := range 40 {
		a.report(task, core.Thinking{Text: strings.Repeat("x", 900) + fmt.Sprint(i)})
	}
	a.report(task, core.Done{})
	whole := task.Events()
	// The hub drops the task from memory once others have ended and the journal has it.
	for g.inMemory(task) {
		other := g.opened(`{"to":"a","content":"next","receipt":"recorded"}`)
		a.report(a.accept(), core.Done{})
		g.ended(other)
	}
	r := g.events(id, "")
	m, _ := r.next()
	var gap struct{ From, To uint64 }
	if err := json.Unmarshal(m.data, &gap); m.event != "gap" || err != nil || gap.From != 1 || gap.To < 10 {
		t.Fatalf("got %q with %s, want a gap from 1", m.event, m.data)
	}
	if diff := cmp.Diff(encoded(whole[gap.To:]), encoded(r.rest())); diff != "" {
		t.Errorf("after the gap (-hub +received):\n%s", diff)
	}
	l, _ := g.events(id, "", asLines).nextLine()
	if l.Gap == nil {
		t.Errorf("in lines: got %+v, want a gap", l)
	}
	if d := g.document(id); d.State != "done" || d.Intent != "" || d.Receipt.Stage != core.StageRecorded {
		t.Errorf("got %+v, want it done and recorded, without its request", d)
	}
}

// inMemory reports whether the hub still has the task in memory.
func (g *testServer) inMemory(task *task.Task) bool {
	g.t.Helper()
	found, err := g.hub.Task(context.Background(), core.Principal{Operator: true}, task.ID())
	if err != nil {
		g.t.Fatal(err)
	}
	return found == task
}

func TestASilentStreamGetsKeepAliveComments(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{KeepAlive: 5 * time.Millisecond})
	a := g.agent("a")
	r := g.follow(http.MethodPost, "/v1/tasks", `{"to":"a","content":"hi"}`, asSSE)
	task := a.accept()
	r.until(core.KindAssigned)
	for range 3 {
		if m, ok := r.next(); !ok || !m.comment {
			t.Fatalf("got %+v, want a comment", m)
		}
	}
	a.report(task, core.Done{})
	if got := kinds(r.rest()); got != "done" {
		t.Errorf("got %s, want done", got)
	}
}

func TestAllTasksAreFollowedLive(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	running := g.opened(`{"to":"a","content":"1"}`)
	first := a.accept()
	events, lines := g.follow(http.MethodGet, "/v1/events", ""), g.follow(http.MethodGet, "/v1/events", "", asLines)
	if m, _ := events.next(); m.id == "" || m.event != "" {
		t.Errorf("got %+v first, want an id alone", m)
	}
	a.report(first, core.Text{Text: "x"}, core.Done{})
	later := g.opened(`{"to":"a","content":"2"}`)
	a.report(a.accept(), core.Done{})

	collect := func(next func() (core.TaskID, core.Event)) map[core.TaskID]string {
		got := map[core.TaskID]string{}
		for ends := 0; ends < 2; {
			id, e := next()
			got[id] += e.Body.Kind().String() + " "
			if e.Body.Kind().Ends() {
				ends++
			}
		}
		return got
	}
	want := map[core.TaskID]string{running: "text done ", later: "opened assigned done "}
	got := collect(func() (core.TaskID, core.Event) {
		m, _ := events.next()
		var l line
		if err := json.Unmarshal(m.data, &struct {
			Task   *core.TaskID
			Cursor *string
		}{&l.Task, &l.Cursor}); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(m.data, &l.Event); err != nil {
			t.Fatal(err)
		}
		if m.id == "" || m.event != l.Event.Body.Kind().String() || l.Cursor != l.Event.Cursor().String() {
			t.Errorf("got id %q, event %q and cursor %q, want one, the kind and the cursor", m.id, m.event, l.Cursor)
		}
		return l.Task, l.Event
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	got = collect(func() (core.TaskID, core.Event) {
		l, _ := lines.nextLine()
		return l.Task, l.Event
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestStreamsReportThatTheHubStops(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	r := g.follow(http.MethodPost, "/v1/tasks", `{"to":"a","content":"hi"}`, asSSE)
	all := g.follow(http.MethodGet, "/v1/events", "", asLines)
	task := a.accept()
	r.until(core.KindAssigned)
	closed := make(chan error, 1)
	go func() { closed <- g.hub.Close(context.Background(), "maintenance") }()
	m, _ := r.next()
	if m.event != "shutdown" || !strings.Contains(string(m.data), "maintenance") {
		t.Errorf("got %q with %s, want shutdown with the reason", m.event, m.data)
	}
	// Running tasks may still finish.
	a.report(task, core.Text{Text: "bye"}, core.Done{})
	if got := kinds(r.rest()); got != "text done" {
		t.Errorf("got %s, want text done", got)
	}
	reported := false
	for l, ok := all.nextLine(); ok; l, ok = all.nextLine() {
		reported = reported || l.Shutdown != nil
	}
	if !reported {
		t.Error("the stream of all tasks: got no shutdown, want one")
	}
	if err := <-closed; err != nil {
		t.Errorf("closing the hub: got %v, want no error", err)
	}
}

func TestAStreamBeyondTheQuotaOfConnectionsIsRefused(t *testing.T) {
	table, err := policy.Compile([]policy.Rule{{Who: []string{"known"}, May: []core.Right{core.RightOperate}}})
	if err != nil {
		t.Fatal(err)
	}
	g := start(t, hub.Options{Authorizer: table, Quotas: quota.NewBook(quota.Limits{Connections: 1})}, rest.Options{})
	one := g.request(t.Context(), http.MethodGet, "/v1/events", "", "X-User: known")
	defer one.Body.Close()
	g.get("/v1/events", "X-User: known").refused(http.StatusServiceUnavailable, core.CodeOverloaded, "quotas.connections")
}

func TestTheStreamOfAllTasksResumesAtItsIDs(t *testing.T) {
	g := start(t, hub.Options{Limits: hub.Limits{FinishedTasks: 1}}, rest.Options{})
	a := g.agent("a")
	first, _ := g.follow(http.MethodGet, "/v1/events", "").next() // an id before the first event
	var want []core.TaskID
	for range 3 {
		want = append(want, g.opened(`{"to":"a","content":"hi","receipt":"recorded"}`))
		a.report(a.accept(), core.Text{Text: "a"}, core.Text{Text: "b"}, core.Done{})
		g.ended(want[len(want)-1])
	}
	const all = 3 * 5
	for _, form := range []string{asSSE, asLines} {
		got, at := map[core.TaskID][]uint64{}, first.id
		for i := range all { // each connection reads one event
			query, header := "?from="+at, "X-Nothing: x"
			if i%2 == 0 {
				query, header = "?from=wrong", "Last-Event-ID: "+at
			}
			r := g.follow(http.MethodGet, "/v1/events"+query, "", form, header)
			var id string
			var data []byte
			if form == asSSE {
				if m, _ := r.next(); m.id != at {
					t.Errorf("got the id %q first, want that of the request, %q", m.id, at)
				}
				m, _ := r.next()
				id, data = m.id, m.data
			} else {
				if got := r.resp.Header.Get("Last-Event-ID"); got != at {
					t.Errorf("got Last-Event-ID %q, want %q", got, at)
				}
				l, _ := r.nextLine()
				id = l.ID
				data, _ = json.Marshal(map[string]any{"task": l.Task, "seq": l.Seq, "merged": l.Merged})
			}
			r.leave()
			var e struct {
				Task   core.TaskID
				Seq    uint64
				Merged *core.Merged
			}
			if err := json.Unmarshal(data, &e); err != nil || id == "" || id == at {
				t.Fatalf("got the id %q with %s, want another id and an event", id, data)
			}
			got[e.Task] = append(got[e.Task], core.Event{Seq: e.Seq, Merged: e.Merged}.End())
			if at = id; len(got) == 3 && len(got[want[2]]) > 0 && got[want[2]][len(got[want[2]])-1] == 5 {
				break
			}
		}
		for _, id := range want {
			if seqs := got[id]; len(seqs) < 4 || seqs[0] != 1 || seqs[len(seqs)-1] != 5 || !slices.IsSorted(seqs) || len(slices.Compact(seqs)) != len(got[id]) {
				t.Errorf("%s: got the events %v of task %s, want each once", form, seqs, id)
			}
		}
	}
	g.get("/v1/events?from=1.3").refused(http.StatusBadRequest, core.CodeInvalid, "position")
	g.get("/v1/events?from="+first.id+"A").refused(http.StatusBadRequest, core.CodeInvalid, "position")
}

// While many tasks run an id is long. Then not each event has one, but those that do resume exactly.
func TestTheStreamOfManyRunningTasksRepeatsNoLongIDs(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a", func(c *core.Card) { c.MaxConcurrent = 100 })
	first, _ := g.follow(http.MethodGet, "/v1/events", "").next()
	const tasks, each = 60, 7 // opened, assigned, 5 pieces
	var running []*task.Task
	for range tasks {
		g.opened(`{"to":"a","content":"hi"}`)
		running = append(running, a.accept())
		a.report(running[len(running)-1], core.Text{Text: "1"}, core.Text{Text: "2"}, core.Text{Text: "3"}, core.Text{Text: "4"}, core.Text{Text: "5"})
	}
	// read returns all events from an id on, as texts, and the ids of those that have one.
	read := func(from string, n int) (events, ids []string) {
		r := g.follow(http.MethodGet, "/v1/events?from="+from, "")
		defer r.leave()
		for len(events) < n {
			m, ok := r.next()
			if !ok {
				t.Fatal("got the end, want more events")
			}
			if m.event != "" {
				events, ids = append(events, string(m.data)), append(ids, m.id)
			}
		}
		return events, ids
	}
	events, ids := read(first.id, tasks*each)
	with := 0
	for i, id := range ids {
		if id == "" {
			continue
		}
		if with++; len(id) > hub.MaxPosition {
			t.Errorf("got an id of %d bytes, want at most %d", len(id), hub.MaxPosition)
		}
		if with%10 == 0 && i+1 < len(events) {
			rest, _ := read(id, len(events)-i-1)
			slices.Sort(rest)
			if want := slices.Sorted(slices.Values(events[i+1:])); !slices.Equal(rest, want) {
				t.Errorf("from the id of event %d: got %d events, want the %d after it", i, len(rest), len(want))
			}
		}
	}
	if with == len(ids) || with < tasks || ids[len(ids)-1] == "" {
		t.Errorf("got %d ids for %d events, want one for each write", with, len(ids))
	}
	for _, one := range running {
		a.report(one, core.Done{})
	}
}
