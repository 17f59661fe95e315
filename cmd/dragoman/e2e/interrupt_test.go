package e2e

import (
	"io"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// Whether ask was interrupted is decided by who asked for the cancel, whatever the
// agent or somebody else writes as the reason.
func TestAskWasInterruptedWhenItAskedForTheCancelItself(t *testing.T) {
	for name, tt := range map[string]struct {
		interrupted bool // this process is, else somebody else cancels the task
		reason      string
		end         core.Body
		code        int
		says        string
	}{
		"the agent gives its own reason":               {true, "", core.Cancelled{Reason: "the kettle is off"}, command.ExitInterrupted, "dragoman: cancelled: the kettle is off\n"},
		"the agent gives none":                         {true, "", core.Cancelled{}, command.ExitInterrupted, "dragoman: cancelled\n"},
		"the agent fails of it":                        {true, "", core.Failed{Fault: core.NewFault(core.CodeTimeout, "broken off")}, command.ExitInterrupted, "dragoman: cancelled, and the task failed (timeout): broken off\n"},
		"the agent was done all the same":              {true, "", core.Done{}, command.ExitDone, ""},
		"somebody else says that it was interrupted":   {false, "interrupted", core.Cancelled{Reason: "interrupted"}, command.ExitFailed, "dragoman: the task was cancelled: interrupted\n"},
		"an agent says it of a cancel of its own":      {false, "", core.Cancelled{Reason: "interrupted"}, command.ExitFailed, "dragoman: the task was cancelled: interrupted\n"},
		"somebody else cancels for a reason of theirs": {false, "too late", core.Cancelled{}, command.ExitFailed, "dragoman: the task was cancelled\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, nil)
			agent := s.service.Hub().Connect(hub.Identity{Principal: core.Principal{ID: "kettle"}, Dialect: "test"})
			defer agent.Close(nil)
			if err := agent.Join(core.Card{ID: "kettle", Features: core.FeatureCancellation}, hub.JoinOptions{}); err != nil {
				t.Fatal(err)
			}
			var task core.TaskID
			report := func(body core.Body) {
				t.Helper()
				if err := agent.Report(task, body, nil); err != nil {
					t.Fatal(err)
				}
			}
			cmd, said := s.asking(t, "kettle", "boil", func() {
				b, err := agent.Next(t.Context())
				if err != nil || b.Task == nil {
					t.Fatalf("got %+v and %v, want the task", b, err)
				}
				task = b.Task.ID()
				report(core.Text{Text: "warm\n"})
			}, "warm\n")
			switch {
			case tt.interrupted:
				interrupted(t, cmd, said, "cancelling: interrupt again to leave")
			case tt.reason != "":
				if code, _, complaint := s.typed(t, "cancel", string(task), "--reason", tt.reason); code != command.ExitDone {
					t.Fatalf("got %d and %q, want it cancelled", code, complaint)
				}
			}
			for told := !tt.interrupted && tt.reason == ""; !told; {
				b, err := agent.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range b.Events {
					told = told || e.Body.Kind() == core.KindCancelRequested
				}
			}
			report(tt.end)
			rest, err := io.ReadAll(said)
			if err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // the code says it
			if code := cmd.ProcessState.ExitCode(); code != tt.code || strings.TrimSpace(string(rest)) != strings.TrimSpace(tt.says) {
				t.Errorf("got the exit code %d and %q, want %d and %q", code, rest, tt.code, tt.says)
			}
		})
	}
}
