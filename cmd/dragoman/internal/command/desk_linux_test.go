package command_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
)

// waits has an agent ask for approval of a tool call, and returns the decision on it once the person at the screen has
// seen the prompt and typed.
func decided(t *testing.T, s *hub.Session, task core.TaskID, call core.ApprovalRequested, person func()) core.ApprovalDecided {
	t.Helper()
	for _, body := range []core.Body{core.ToolCall{ID: call.ID, Name: call.Name, Input: call.Input}, call} {
		if err := s.Report(task, body, nil); err != nil {
			t.Fatalf("%s: got %v, want it taken", body.Kind(), err)
		}
	}
	person()
	b := nextBatch(t, s, func(b hub.Batch) bool { return decisionIn(b) != nil })
	return *decisionIn(b)
}

func decisionIn(b hub.Batch) *core.ApprovalDecided {
	for _, e := range b.Events {
		if d, ok := e.Body.(core.ApprovalDecided); ok {
			return &d
		}
	}
	return nil
}

func TestAskDecidesInPlace(t *testing.T) {
	for _, width := range []uint16{60, 80, 120} {
		t.Run(fmt.Sprint(width, " columns"), func(t *testing.T) {
			h, at := served(t)
			worker := joins(t, h, "worker", "ui")
			screen := newScreen(t)
			screen.resize(t, width, 24)
			code := screen.runs(t, "ask", "worker", "build", "--hub="+at)
			task := nextBatch(t, worker, isAssigned).Task.ID()

			rm := `{"command":"rm -rf build\u001b[2J"}`
			d := decided(t, worker, task, core.ApprovalRequested{ID: "1", Name: "Bash", Input: rm}, func() {
				screen.await(t, `Allow Bash: rm -rf build\\x1b\[2J\? \[y\]es, \[n\]o: $`)
				screen.types(t, "what\n")
				screen.await(t, `type y to allow it, or n to deny it\r\nAllow Bash.*: $`)
				screen.types(t, "y\n")
			})
			if !d.Approved || d.InputSHA256 != core.InputDigest(rm) || d.All {
				t.Errorf("y: got %+v, want this input approved", d)
			}

			long := asJSON(map[string]string{"file_path": "x.go", "text": strings.Repeat("line\n", 100) + "the end"})
			d = decided(t, worker, task, core.ApprovalRequested{ID: "2", Name: "Write", Input: string(long)}, func() {
				screen.await(t, `Allow Write:\r\n  file_path: x.go\r\n(.*\r\n)*… and \d+ more characters: \[n\]o, \[s\]how all: $`)
				screen.types(t, "y\n")
				screen.await(t, `not all of it was on the screen yet: s shows the rest\r\n… and .*: $`)
				screen.types(t, "s\n")
				screen.await(t, `  the end\r\nAllow it\? \[y\]es, \[n\]o: $`)
				screen.types(t, "yes\n")
			})
			if !d.Approved || d.InputSHA256 != core.InputDigest(string(long)) {
				t.Errorf("yes, after all was shown: got %+v, want this input approved", d)
			}

			d = decided(t, worker, task, core.ApprovalRequested{ID: "3", Name: "Bash", Input: "not JSON"}, func() {
				screen.await(t, `Allow Bash: not JSON\? `)
				screen.types(t, "n\n")
			})
			if d.Approved {
				t.Errorf("n: got %+v, want it denied", d)
			}

			worker.CallTool("q", "ask_user", json.RawMessage(`{"question":"Which day?","options":[{"label":"Friday"},{"label":"Sunday","description":"late"}]}`))
			screen.await(t, `worker asks: Which day\?\r\n  1. Friday\r\n  2. Sunday: late\r\nAnswer with a number, or in words: $`)
			screen.types(t, "2\n")
			b := nextBatch(t, worker, func(b hub.Batch) bool { return b.Tool != nil })
			if got := string(b.Tool.Output); !strings.Contains(got, "Sunday") {
				t.Errorf("2: got %s, want Sunday", got)
			}
			if err := worker.Report(task, core.Done{Text: "built"}, nil); err != nil {
				t.Error(err)
			}
			if got := <-code; got != command.ExitDone {
				t.Errorf("got exit code %d, want 0", got)
			}
			text := screen.shown()
			if !strings.Contains(text, "\nbuilt\n") {
				t.Errorf("got\n%s\nwant the answer on a line of its own", text)
			}
			checkVisible(t, []string{"ask"}, text, true)
		})
	}
}

// What was typed before a call was shown decides nothing, and neither does it once somebody else has decided.
func TestOnlyWhatIsTypedAfterACallWasShownDecides(t *testing.T) {
	h, at := served(t)
	worker := joins(t, h, "worker")
	screen := newScreen(t)
	code := screen.runs(t, "ask", "worker", "build", "--hub="+at)
	task := nextBatch(t, worker, isAssigned).Task.ID()
	screen.types(t, "y\ny\n")
	d := decided(t, worker, task, core.ApprovalRequested{ID: "1", Name: "Bash", Input: "rm"}, func() {
		screen.await(t, `Allow Bash: rm\? .*: $`)
		if got, out, stderr := run(t, "deny", string(task), "1", "--hub="+at); got != command.ExitDone {
			t.Errorf("deny elsewhere: got %d, %s and %s, want it denied", got, out, stderr)
		}
		screen.await(t, `\[1 denied by local\]`)
	})
	if d.Approved {
		t.Errorf("got %+v, want it denied elsewhere", d)
	}
	if err := worker.Report(task, core.Done{Text: "well"}, nil); err != nil {
		t.Error(err)
	}
	if got := <-code; got != command.ExitDone {
		t.Errorf("got exit code %d, want 0", got)
	}
}

func TestAskWithoutInputShowsTheCommandThatDecides(t *testing.T) {
	h, at := served(t)
	worker := joins(t, h, "worker")
	screen := newScreen(t)
	code := screen.runs(t, "ask", "worker", "build", "--no-input", "--hub="+at)
	task := nextBatch(t, worker, isAssigned).Task.ID()
	decided(t, worker, task, core.ApprovalRequested{ID: "1", Name: "Bash", Input: "rm"}, func() {
		screen.await(t, `\[Bash waits for approval: rm; 'dragoman approve --hub \S+ \S+ --input-sha256 \S+ 1' or`)
		run(t, "deny", string(task), "1", "--hub="+at)
	})
	if err := worker.Report(task, core.Done{Text: "well"}, nil); err != nil {
		t.Error(err)
	}
	if got := <-code; got != command.ExitDone {
		t.Errorf("got exit code %d, want 0", got)
	}
}

func TestApproveWithoutATaskAsksAboutEachCallThatWaits(t *testing.T) {
	h, at := served(t)
	worker := joins(t, h, "worker", "ui")
	asker := h.Connect(hub.Identity{Principal: core.Principal{ID: "ann"}})
	t.Cleanup(func() { asker.Close(nil) })
	task, err := asker.Open(core.Request{To: core.ToAgent("worker"), Content: "build"}, hub.OpenOptions{Attends: true})
	if err != nil {
		t.Fatal(err)
	}
	nextBatch(t, worker, isAssigned)
	for _, id := range []string{"1", "2", "3"} {
		for _, body := range []core.Body{core.ToolCall{ID: id, Name: "Bash", Input: id}, core.ApprovalRequested{ID: id, Name: "Bash", Input: id}} {
			if err := worker.Report(task.ID(), body, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	screen := newScreen(t)
	code := screen.runs(t, "approve", "--hub="+at)
	for _, step := range []struct{ shown, typed string }{
		{`\[worker works for ann on task \S+ it waits for another \S+\]\r\nAllow Bash: 1\? \[y\]es, \[n\]o, or Enter for later: $`, "y\n"},
		{`1 approved by local\r\n\[.*\]\r\nAllow Bash: 2\? .*: $`, "\n"},
		{`Allow Bash: 3\? .*: $`, "n\n"},
		{`3 denied by local\r\n`, ""},
	} {
		screen.await(t, step.shown)
		screen.types(t, step.typed)
	}
	if got := <-code; got != command.ExitDone {
		t.Errorf("approve: got exit code %d, want 0", got)
	}
	if left, _ := h.Approvals(t.Context(), core.Principal{ID: "local", Operator: true}); len(left) != 1 || left[0].ID != "2" {
		t.Errorf("got %+v left, want the call that was passed over", left)
	}
	asker.WatchQuestions(question.View{Thread: task.Thread(), For: core.Principal{ID: "ann"}})
	worker.CallTool("q", "ask_user", json.RawMessage(`{"question":"Which?","options":[{"label":"a"},{"label":"b"}]}`))
	nextBatch(t, asker, func(b hub.Batch) bool { return b.Question != nil })
	screen = newScreen(t)
	code = screen.runs(t, "answer", "--hub="+at)
	screen.await(t, `worker asks: Which\?\r\n  1. a\r\n  2. b\r\nAnswer with a number, or in words, or Enter for later: $`)
	screen.types(t, "b\n")
	if got := <-code; got != command.ExitDone {
		t.Errorf("answer: got exit code %d, want 0", got)
	}
	screen.await(t, `later: b\r\nb\r\n`)
}
