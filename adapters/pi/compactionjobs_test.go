package pi_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// answersOf returns the work of an agent that answers with size bytes, and requests for a
// summary with the bodies.
func answersOf(size int, summary ...core.Body) func(*testAgent, hub.Batch) {
	return func(a *testAgent, b hub.Batch) {
		switch {
		case !assigned(b):
		case asksForSummary(b.Task.Request()):
			a.report(b.Task, summary...)
		default:
			a.report(b.Task, core.Text{Text: strings.Repeat("long ", size/5)}, core.Done{})
		}
	}
}

const promptCommand = `{"type":"prompt","sessionId":"s","message":"more"}`

func TestOtherSessionsAreServedWhileACompactionIsPrepared(t *testing.T) {
	h, s := newServer(t, pi.Options{CompactAt: -1})
	joinAgent(t, h, core.Card{ID: "a"}, answersOf(100_000, summaryBodies...))
	c, other := dial(t, s, pi.ConnOptions{}), dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	c.ok(promptCommand)
	c.ok(promptCommand)
	release := stall(s.Parts().Summaries, 1)
	c.send(compactCommand)
	other.until("command_started", `"commandId":"c"`)
	other.open("t", "a")
	other.ok(`{"type":"prompt","sessionId":"t","message":"hello"}`)
	other.ok(`{"type":"get_state","sessionId":"s"}`)
	if got := c.count(`"response"`, `"id":"c"`); got != 0 {
		t.Errorf("got %d responses to compact, want it still running", got)
	}
	release()
	c.until(`"response"`, `"id":"c"`, `"success":true`)
}

func TestAbortStopsTheSummaryThatIsBeingPrepared(t *testing.T) {
	h, s := newServer(t, pi.Options{CompactAt: -1})
	joinAgent(t, h, core.Card{ID: "a", Features: core.FeatureCancellation}, answersOf(100_000))
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	c.ok(promptCommand)
	c.ok(promptCommand)
	release := stall(s.Parts().Summaries, 1)
	c.send(compactCommand)
	c.until("command_started", `"commandId":"c"`)
	c.ok(`{"type":"abort_compaction","sessionId":"s"}`)
	release()
	c.until(`"response"`, `"id":"c"`, `"success":false`, `"error":"`+cancelledCompaction+`"`)
}

func TestAFailedAutomaticCompactionIsNotRetriedAfterEachAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newServer(t, pi.Options{})
		summary := []core.Body{core.Failed{Fault: core.NewFault(core.CodeInvalid, "no idea")}}
		joinAgent(t, h, core.Card{ID: "a"}, func(a *testAgent, b hub.Batch) { answersOf(400_000, summary...)(a, b) })
		joinAgent(t, h, core.Card{ID: "b"}, answersOf(400_000, summaryBodies...))
		c := dial(t, s, pi.ConnOptions{Snapshots: render.SnapshotsNone})
		c.open("s", "a")
		tries := func(n, want int, when string) {
			t.Helper()
			for range n {
				c.ok(promptCommand)
			}
			synctest.Wait()
			if got := c.count(fmt.Sprintf(startedFor, "threshold")); got != want {
				t.Errorf("%s: got %d compactions, want %d", when, got, want)
			}
		}
		tries(5, 1, "behind the first answers")
		time.Sleep(time.Minute)
		tries(2, 2, "a minute later")
		time.Sleep(time.Minute)
		tries(2, 2, "another minute later, when the pause is twice as long")
		time.Sleep(time.Minute)
		tries(2, 3, "when that is over")
		c.ok(`{"type":"set_model","sessionId":"s","provider":"coven","modelId":"b"}`)
		tries(1, 4, "with another agent")
		c.until(summaryEnd)
	})
}
