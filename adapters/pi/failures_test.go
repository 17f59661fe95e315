package pi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

// A client subscribes late to a run that is far longer than its queue and stalls during the
// replay, while the run goes on.
func TestQueueOverflowHangsUpDuringReplay(t *testing.T) {
	const chunks = 3000 // before it subscribes, and the same number while it is stalled
	h, s := newServer(t, pi.Options{Link: link.Options{QueueBytes: 512}})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a"}, w.work)
	early := dial(t, s, pi.ConnOptions{Snapshots: render.SnapshotsNone})
	early.open("s", "a")
	early.send(`{"id":"p","type":"prompt","sessionId":"s","message":"go"}`)
	task := <-w.tasks
	want := strings.Builder{}
	want.WriteString("begun")
	speak := func(from int) {
		for i := range chunks {
			text := fmt.Sprintf("%d ", from+i)
			want.WriteString(text)
			a.report(task, core.Text{Text: text})
		}
	}
	speak(0)

	hubs, clients := coretest.Pipe[[]byte, []byte](1)
	wall := &blockedTransport{Conn: hubs, after: `"message_update"`, free: make(chan struct{})}
	late := dialOver(t, s, pi.ConnOptions{Snapshots: render.SnapshotsNone}, wall, clients)
	late.ok(`{"type":"switch_session","sessionId":"s"}`)
	late.until("message_start") // the replay has begun
	speak(chunks)
	a.report(task, core.Done{})
	early.until(`"command_finished"`, `"commandId":"p"`)
	if n := late.count("message_update"); n != 0 {
		t.Errorf("the late client got %d updates while it was stalled, want none", n)
	}
	select {
	case reason := <-late.served:
		t.Fatalf("the late client was hung up on during the replay: %v", &reason)
	default:
	}

	wall.release()
	late.until("agent_end")
	for name, c := range map[string]*testClient{"early": early, "late": late} {
		tr := c.transcript("s")
		if got := tr.Deltas.String(); got != want.String() {
			t.Errorf("the %s client got %d bytes of text, want %d in order", name, len(got), want.Len())
		}
		if tr.Snapshots != want.String() {
			t.Errorf("the %s client got a final message of %d bytes, want %d", name, len(tr.Snapshots), want.Len())
		}
	}
	late.ok(`{"type":"health_check"}`) // its connection is still open
}
