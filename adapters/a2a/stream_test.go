package a2a_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/a2a"
	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/task"
)

const cursors = "A2A-Extensions: urn:other, urn:dragoman:a2a:cursor:1"

// cursorOf returns the cursor of an item.
func cursorOf(t *testing.T, i wire.StreamResponse) string {
	t.Helper()
	var raw json.RawMessage
	switch {
	case i.Task != nil:
		raw = i.Task.Metadata
	case i.ArtifactUpdate != nil:
		raw = i.ArtifactUpdate.Metadata
	case i.StatusUpdate != nil:
		raw = i.StatusUpdate.Metadata
	}
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	cursor, _ := m[wire.CursorExtension].(string)
	if cursor == "" {
		t.Fatalf("got %s, want a cursor", raw)
	}
	return cursor
}

func subscribe(id, cursor string) string {
	return fmt.Sprintf(`{"id":%q,"metadata":{"urn:dragoman:a2a:cursor:1":%q}}`, id, cursor)
}

func TestAStreamContinuesExactlyFromEveryCursor(t *testing.T) {
	for _, b := range bindings {
		t.Run(string(b), func(t *testing.T) {
			f := start(t, a2a.Options{})
			a := f.agent("shout")
			s := f.stream(b, "shout", wire.MethodStream, message("m1", "go", ""), cursors)
			if got := s.resp.Header.Get("A2A-Extensions"); got != wire.CursorExtension {
				t.Errorf("got the extensions %q, want the one that is active", got)
			}
			first, _ := s.next()
			task, _ := a.next(core.KindAssigned)
			long := strings.Repeat("ä", 1<<19+7) // two parts
			a.say(task, core.Thinking{Text: "hm"}, core.Text{Text: "A"}, core.Text{Text: "B"}, core.File{Name: "f", Data: []byte("x")}, core.Text{Text: long}, core.Usage{Input: 1},
				core.ToolCall{ID: "1", Name: "n"}, core.Text{Text: "C"}, core.Done{Data: json.RawMessage(`{}`)})
			items := append([]wire.StreamResponse{first}, s.rest()...)
			want := textOf(items)
			if want != "AB"+long+"C" {
				t.Fatalf("got %d bytes of text, want the whole", len(want))
			}
			text := ""
			for i, item := range items {
				text += textOf([]wire.StreamResponse{item})
				for _, b := range bindings {
					back := f.stream(b, "shout", wire.MethodSubscribe, subscribe(first.Task.ID, cursorOf(t, item)))
					rest := back.rest()
					if got := text + textOf(rest); got != want {
						t.Errorf("after item %d: got %d bytes in all, want %d", i, len(got), len(want))
					}
					for _, r := range rest {
						if r.Task != nil {
							t.Errorf("after item %d: got the whole task, want what follows", i)
						}
					}
					if i < len(items)-1 && lastState(rest) != wire.StateCompleted {
						t.Errorf("after item %d: got the state %q at the end", i, lastState(rest))
					}
					if i > 0 && len(rest) > len(items)-1-i {
						t.Errorf("after item %d: got %d items, want at most %d", i, len(rest), len(items)-1-i)
					}
				}
			}
			back := f.stream(b, "shout", wire.MethodSubscribe, fmt.Sprintf(`{"id":%q}`, first.Task.ID), "Last-Event-ID: "+cursorOf(t, items[len(items)-2]))
			if rest := back.rest(); len(rest) != 1 || lastState(rest) != wire.StateCompleted {
				t.Errorf("got %+v for the cursor in Last-Event-ID, want the end alone", rest)
			}
			for _, wrong := range []string{"x", "1.99999", "1.2:0", "1.2:x", "7.1"} {
				if _, _, failed := f.call(b, "shout", wire.MethodSubscribe, subscribe(first.Task.ID, wrong)); failed.reason() != "INVALID_PARAMS" {
					t.Errorf("%s: got %v, want INVALID_PARAMS", wrong, failed)
				}
			}
		})
	}
}

// told returns what items say, one line each: the state and the kind of event of a status, the
// text of an artifact.
func told(t *testing.T, items []wire.StreamResponse) (all []string) {
	t.Helper()
	for _, i := range items {
		switch {
		case i.Task != nil:
			all = append(all, fmt.Sprintf("task %s %q", i.Task.Status.State, answerOf(*i.Task)))
		case i.ArtifactUpdate != nil:
			all = append(all, wire.Text(i.ArtifactUpdate.Artifact.Parts))
		case i.StatusUpdate != nil:
			var m struct{ Event struct{ Kind string } }
			if said := i.StatusUpdate.Status.Message; said != nil && json.Unmarshal(said.Metadata, &m) != nil {
				t.Fatalf("got the metadata %s, want an event", said.Metadata)
			}
			all = append(all, strings.TrimSpace(string(i.StatusUpdate.Status.State)+" "+m.Event.Kind))
		}
	}
	return all
}

// wantTold fails the test unless a stream has these items.
func wantTold(t *testing.T, s *stream, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, told(t, s.rest())); diff != "" {
		t.Errorf("the items of the stream (-want +got):\n%s", diff)
	}
}

func TestAStreamHasEveryItemOfAnAgentThatEndsAtOnce(t *testing.T) {
	for _, b := range bindings {
		f := start(t, a2a.Options{})
		a := f.agent("fast")
		a.does(func(t *task.Task) {
			a.say(t, core.Thinking{Text: "hm"}, core.ToolCall{ID: "1", Name: "n"}, core.ToolResult{ID: "1"}, core.Text{Text: "A"}, core.Usage{Input: 1}, core.Done{})
		})
		want := []string{`task TASK_STATE_SUBMITTED ""`, "TASK_STATE_WORKING", "TASK_STATE_WORKING thinking", "TASK_STATE_WORKING tool_call", "TASK_STATE_WORKING tool_result", "A", "TASK_STATE_COMPLETED"}
		wantTold(t, f.stream(b, "fast", wire.MethodStream, message("m1", "go", "")), want...)
		// The same message again is answered after the task has ended.
		wantTold(t, f.stream(b, "fast", wire.MethodStream, message("m1", "go", "")), want...)
	}
}

func TestTheStreamOfAMessageToATaskBeginsWithWhatTheMessageDid(t *testing.T) {
	for _, b := range bindings {
		f := start(t, a2a.Options{})
		a := f.agent("fast")
		a.does(func(t *task.Task) {
			a.say(t, core.Text{Text: "A"}, core.ApprovalRequested{ID: "1", Name: "n"})
			a.next(core.KindApprovalDecided)
			a.say(t, core.Thinking{Text: "hm"}, core.ToolResult{ID: "1"}, core.Text{Text: "B"}, core.Done{})
		})
		asked := f.send(b, "fast", message("m1", "go", ""))
		decision := fmt.Sprintf(`{"message":{"messageId":"m2","role":"ROLE_USER","taskId":%q,"parts":[{"data":{"approval":{"id":"1","approved":true}}}]}}`, asked.ID)
		wantTold(t, f.stream(b, "fast", wire.MethodStream, decision), `task TASK_STATE_WORKING "A"`, "TASK_STATE_WORKING thinking", "TASK_STATE_WORKING tool_result", "B", "TASK_STATE_COMPLETED")
	}
}

func TestWithoutTheExtensionNoItemHasACursor(t *testing.T) {
	f := start(t, a2a.Options{})
	f.agent("shout").shouts()
	s := f.stream(rpc, "shout", wire.MethodStream, message("m1", "go", ""))
	for _, i := range s.rest() {
		if u := i.ArtifactUpdate; u != nil && u.Metadata != nil {
			t.Errorf("got the metadata %s, want none", u.Metadata)
		}
	}
}

func TestAStreamThatWasCutGoesOnWhileTheTaskRuns(t *testing.T) {
	f := start(t, a2a.Options{})
	a := f.agent("shout")
	s := f.stream(rest, "shout", wire.MethodStream, message("m1", "go", ""), cursors)
	first, _ := s.next()
	task, _ := a.next(core.KindAssigned)
	a.say(task, core.Text{Text: "one "})
	var last wire.StreamResponse
	for last.ArtifactUpdate == nil {
		last, _ = s.next()
	}
	s.close()
	<-f.left
	a.say(task, core.Text{Text: "two "})
	back := f.stream(rpc, "shout", wire.MethodSubscribe, subscribe(first.Task.ID, cursorOf(t, last)))
	whole := f.stream(rpc, "shout", wire.MethodSubscribe, fmt.Sprintf(`{"id":%q}`, first.Task.ID))
	if snapshot, _ := whole.next(); snapshot.Task == nil || answerOf(*snapshot.Task) != "one two " || snapshot.Task.Status.State != wire.StateWorking {
		t.Errorf("got %+v, want the task so far", snapshot.Task)
	}
	if item, _ := back.next(); textOf([]wire.StreamResponse{item}) != "two " || !item.ArtifactUpdate.Append {
		t.Errorf("got %+v, want the missing chunk to be appended", item)
	}
	whole.close() // one that leaves disturbs nobody
	a.say(task, core.Text{Text: "three"}, core.Done{})
	if items := back.rest(); textOf(items) != "three" || lastState(items) != wire.StateCompleted {
		t.Errorf("got %q and %s, want the rest", textOf(items), lastState(items))
	}
}

func TestTwoSubscribersSeeTheSame(t *testing.T) {
	f := start(t, a2a.Options{})
	a := f.agent("shout")
	s := f.stream(rpc, "shout", wire.MethodStream, message("m1", "go", ""))
	first, _ := s.next()
	task, _ := a.next(core.KindAssigned)
	one := f.stream(rpc, "shout", wire.MethodSubscribe, subscribe(first.Task.ID, "1.2"))
	two := f.stream(rest, "shout", wire.MethodSubscribe, subscribe(first.Task.ID, "1.2"))
	for i := range 100 {
		a.say(task, core.Text{Text: fmt.Sprint(i, " ")}, core.Thinking{Text: fmt.Sprint(i)})
	}
	a.say(task, core.Done{})
	tell := func(items []wire.StreamResponse) (all []string) {
		for _, i := range items {
			b, err := strictjson.Marshal(i)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(b))
		}
		return all
	}
	x, y := tell(one.rest()), tell(two.rest())
	if len(x) < 200 || strings.Join(x, "\n") != strings.Join(y, "\n") {
		t.Errorf("got %d and %d items, want the same in the same order", len(x), len(y))
	}
	if items := s.rest(); lastState(items) != wire.StateCompleted {
		t.Errorf("got %s, want the first stream to end too", lastState(items))
	}
}

func TestASilentStreamIsKeptAlive(t *testing.T) {
	f := start(t, a2a.Options{KeepAlive: time.Millisecond})
	a := f.agent("shout")
	s := f.stream(rpc, "shout", wire.MethodStream, message("m1", "go", ""))
	s.next()
	task, _ := a.next(core.KindAssigned)
	for s.alive < 3 {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, ":") {
			s.alive++
		}
	}
	a.say(task, core.Done{})
	if items := s.rest(); lastState(items) != wire.StateCompleted {
		t.Errorf("got %s, want the end", lastState(items))
	}
}

func TestAReaderThatReadsNothingIsCutOffAndDelaysNobody(t *testing.T) {
	tier.Full(t, "it waits until a write has taken 20 s")
	f := startBehind(t, a2a.Options{}, 20*time.Second)
	a := f.agent("shout")
	slow := f.stream(rpc, "shout", wire.MethodStream, message("m1", "go", ""))
	first, _ := slow.next()
	task, _ := a.next(core.KindAssigned)
	fast := f.stream(rest, "shout", wire.MethodSubscribe, fmt.Sprintf(`{"id":%q}`, first.Task.ID))
	chunk := strings.Repeat("x", 64<<10)
	go func() {
		for range 400 {
			a.say(task, core.Text{Text: chunk})
		}
		a.say(task, core.Done{})
	}()
	items := fast.rest()
	if got := len(textOf(items)); got != 400*len(chunk) || lastState(items) != wire.StateCompleted {
		t.Errorf("got %d bytes and %s, want all and the end", got, lastState(items))
	}
	<-f.left
	<-f.left // both have been served
	if got := f.hub.Counters()["a2a.cut"]; got != 1 {
		t.Errorf("got %d streams cut off, want 1", got)
	}
	if all := slow.rest(); lastState(all) == wire.StateCompleted {
		t.Error("got the end at a reader that read nothing, want the stream cut")
	}
}

func TestTheHubStoppingEndsTheStreamsWithTheirTasks(t *testing.T) {
	f := start(t, a2a.Options{})
	a := f.agent("shout")
	s := f.stream(rpc, "shout", wire.MethodStream, message("m1", "go", ""))
	s.next()
	a.next(core.KindAssigned)
	over := time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.hub.Close(ctx, "the test is over"); err != nil {
		t.Error(err)
	}
	if items := s.rest(); lastState(items) != wire.StateFailed {
		t.Errorf("got %s after %s, want the task failed", lastState(items), time.Since(over))
	}
	if _, _, failed := f.call(rpc, "shout", wire.MethodSend, message("m2", "go", "")); failed == nil {
		t.Error("got a message accepted, want an error")
	}
}
