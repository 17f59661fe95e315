package command_test

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
)

func TestAgainAsksWhatATaskAskedInItsConversation(t *testing.T) {
	h, at := served(t)
	if code, _, stderr := run(t, "again", "--hub="+at); code != command.ExitUsage || !strings.Contains(stderr, "you have asked for no task") {
		t.Errorf("without a task: got %d and %q, want %d", code, stderr, command.ExitUsage)
	}
	worker := joins(t, h, "worker")
	asked := make(chan core.Request, 2)
	go func() {
		for _, end := range []core.Body{core.Failed{Fault: core.NewFault(core.CodeOverloaded, "come back later")}, core.Done{Text: "here it is"}} {
			task := nextBatch(t, worker, isAssigned).Task
			r := task.Request()
			r.Thread = task.Thread()
			asked <- r
			_ = worker.Report(task.ID(), end, nil)
		}
	}()
	if code, _, stderr := run(t, "ask", "worker", "plan it", `--data={"days":2}`, "--hub="+at); code != command.ExitFailed {
		t.Fatalf("got %d and %q, want a failure", code, stderr)
	}
	if code, out, stderr := run(t, "again", "--hub="+at); code != command.ExitDone || out != "here it is\n" {
		t.Errorf("got %d, %q and %q, want the answer", code, out, stderr)
	}
	first, second := <-asked, <-asked
	if second.Content != "plan it" || string(second.Data) != `{"days":2}` || second.To.String() != "worker" || second.Thread != first.Thread {
		t.Errorf("asked again: got %+v, want what was asked first, in conversation %s", second, first.Thread)
	}
}
