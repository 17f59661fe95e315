package e2e

import (
	"io"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// Whether ask was interrupted depends on who requested the cancellation, whatever the agent or
// somebody else gives as the reason.
func TestAskReportsAnInterruptOnlyIfItCancelledTheTask(t *testing.T) {
	for name, tt := range map[string]struct {
		interrupted bool // this process is, else somebody else cancels the task
		reason      string
		end         core.Body
		code        int
		says        string
	}{
		"the agent gives its own reason":                    {true, "", core.Cancelled{Reason: "the kettle is off"}, command.ExitInterrupted, "dragoman: cancelled: the kettle is off\n"},
		"the agent gives none":                              {true, "", core.Cancelled{}, command.ExitInterrupted, "dragoman: cancelled\n"},
		"the agent fails":                                   {true, "", core.Failed{Fault: core.NewFault(core.CodeTimeout, "broken off")}, command.ExitInterrupted, "dragoman: cancelled, and the task failed (timeout): broken off\n"},
		"the agent was done before":                         {true, "", core.Done{}, command.ExitDone, ""},
		"somebody else cancels with the reason interrupted": {false, "interrupted", core.Cancelled{Reason: "interrupted"}, command.ExitFailed, "dragoman: the task was cancelled: interrupted\n"},
		"an agent cancels with the reason interrupted":      {false, "", core.Cancelled{Reason: "interrupted"}, command.ExitFailed, "dragoman: the task was cancelled: interrupted\n"},
		"somebody else cancels with another reason":         {false, "too late", core.Cancelled{}, command.ExitFailed, "dragoman: the task was cancelled: too late\n"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newTestHub(t, nil)
			agent := h.service.Hub().Connect(hub.Identity{Principal: core.Principal{ID: "kettle"}, Dialect: "test"})
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
			cmd, printed := h.startAsk(t, "kettle", "boil", func() {
				b, err := agent.Next(t.Context())
				if err != nil || b.Task == nil {
					t.Fatalf("got %+v and %v, want the task", b, err)
				}
				task = b.Task.ID()
				report(core.Text{Text: "warm\n"})
			}, "warm\n")
			switch {
			case tt.interrupted:
				interrupt(t, cmd, printed, "cancelling: interrupt again to leave")
			case tt.reason != "":
				if code, _, stderr := h.run(t, "cancel", string(task), "--reason", tt.reason); code != command.ExitDone {
					t.Fatalf("got %d and %q, want it cancelled", code, stderr)
				}
			}
			for received := !tt.interrupted && tt.reason == ""; !received; {
				b, err := agent.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range b.Events {
					received = received || e.Body.Kind() == core.KindCancelRequested
				}
			}
			report(tt.end)
			rest, err := io.ReadAll(printed)
			if err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // the exit code is checked
			if code := cmd.ProcessState.ExitCode(); code != tt.code || strings.TrimSpace(string(rest)) != strings.TrimSpace(tt.says) {
				t.Errorf("got the exit code %d and %q, want %d and %q", code, rest, tt.code, tt.says)
			}
		})
	}
}
