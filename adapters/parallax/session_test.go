package parallax

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// samples has one event of each kind.
var samples = []core.Body{
	core.Assigned{Agent: "other", Attempt: 1}, core.Accepted{}, core.SessionStarted{Session: "s"}, core.SessionLost{Reason: "gone"}, core.Thinking{Text: "hm"},
	core.Text{Text: "hello"}, core.ToolCall{ID: "c", Name: "n"}, core.ToolState{ID: "c", State: core.ToolRunning}, core.ToolResult{ID: "c"},
	core.ApprovalRequested{ID: "c", Name: "n"}, core.ApprovalDecided{ID: "c"}, core.QuestionAsked{ID: "q", Text: "which?"},
	core.QuestionAnswered{ID: "q", Answered: true, Text: "that"}, core.Injected{ID: "i"}, core.InjectionAnswered{ID: "i"},
	core.File{Name: "f"}, core.Usage{Input: 1}, core.Retrying{Attempt: 1, Agent: "b", Fault: core.NewFault(core.CodeOverloaded, "full")},
	core.CancelRequested{By: "hub"}, core.ForeignFrame{Dialect: "other", Name: "dance"},
	core.Done{}, core.Failed{Fault: core.NewFault(core.CodeInternal, "broke")}, core.Cancelled{Reason: "enough"}, core.Opened{},
}

func TestThereIsASampleOfEveryKind(t *testing.T) {
	for _, k := range core.Kinds() {
		if !slices.ContainsFunc(samples, func(b core.Body) bool { return b.Kind() == k }) {
			t.Errorf("%s: got no sample, want one", k)
		}
	}
}

// withTask runs a test with a task of an agent of no dialect, and ends the task.
func withTask(t *testing.T, test func(h *hub.Hub, task *task.Task)) {
	t.Helper()
	h := coretest.NewHub(t, hub.Options{})
	agent, asker := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}}), h.Connect(hub.Identity{Principal: core.Principal{ID: "asker"}})
	defer asker.Close(nil)
	defer agent.Close(nil)
	if err := agent.Join(core.Card{ID: "a"}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	task, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	test(h, task)
	if err := agent.Report(task.ID(), core.Done{}, nil); err != nil {
		t.Fatal(err)
	}
}

// expectCounted checks that an event was counted as its disposition requires.
func expectCounted(t *testing.T, h *hub.Hub, how core.Handling, b core.Body, folds bool) {
	t.Helper()
	k := b.Kind().String()
	want := map[string]int64{}
	switch {
	case how == core.Folded || how == core.Native && folds:
		want["parallax.folded."+k] = 1
	case how == core.Refused:
		want["parallax.refused."+k] = 1
	}
	for _, name := range []string{"parallax.folded." + k, "parallax.refused." + k} {
		if got := h.Counters()[name]; got != want[name] {
			t.Errorf("counter %s: got %d, want %d", name, got, want[name])
		}
	}
}

func TestEventsThatAnAgentCannotGetAreCounted(t *testing.T) {
	for _, b := range samples {
		t.Run(b.Kind().String(), func(t *testing.T) {
			withTask(t, func(h *hub.Hub, task *task.Task) {
				s := &session{hub: h, id: "a", opts: Options{}.withDefaults(), tasks: newTasks()}
				s.tasks.byID[task.ID()] = &heldTask{execution: executionOf(task.ID(), 1)}
				if err := (core.Event{Body: b}).DeliverToAgent(&agentSink{s: s, task: task}); err != nil {
					t.Fatal(err)
				}
				expectCounted(t, h, Translation.ToAgent[b.Kind()].How, b, false)
			})
		})
	}
}

func TestEventsThatARequesterGetsFoldedAreCounted(t *testing.T) {
	for name, extended := range map[string]bool{"with extensions": true, "without": false} {
		for _, b := range samples {
			t.Run(name+"/"+b.Kind().String(), func(t *testing.T) {
				withTask(t, func(h *hub.Hub, task *task.Task) {
					s := &session{hub: h, opts: Options{}.withDefaults(), extensions: map[string]bool{wire.ExtensionProgress: extended, wire.ExtensionAccepted: extended}}
					if err := (core.Event{Body: b}).Deliver(&requesterSink{s: s, task: task, request: &request{id: "q"}}); err != nil {
						t.Fatal(err)
					}
					how, k := Translation.ToRequester[b.Kind()].How, b.Kind()
					expectCounted(t, h, how, b, !extended && !k.Ends() && k != core.KindText && k != core.KindFile)
				})
			})
		}
	}
}

func TestOnlyTheLatestEndedTasksAreRemembered(t *testing.T) {
	h := newTasks()
	for i := range 3 * maxEnded {
		id := core.TaskID(fmt.Sprint(i))
		task := &heldTask{}
		h.byID[id] = task
		h.end(id, task)
		h.end(id, task)
	}
	if len(h.byID) != maxEnded || h.byID[core.TaskID(fmt.Sprint(3*maxEnded-1))] == nil || h.byID[core.TaskID(fmt.Sprint(2*maxEnded-1))] != nil {
		t.Errorf("got %d tasks, want the latest %d", len(h.byID), maxEnded)
	}
}
