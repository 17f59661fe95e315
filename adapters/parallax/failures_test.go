package parallax_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

// The receipt is delivered once the agent's transport has taken the task, and not while
// the task is queued: an agent that stops reading and disconnects got nothing.
func TestSuccessReceiptMessageLost(t *testing.T) {
	withHub(t, func(s *setup) {
		agent, conn := coretest.Pipe[[]byte, []byte](0) // writes wait for the agent to read
		ended := make(chan link.Reason, 1)
		go func() { ended <- parallax.Serve(context.Background(), s.hub, conn, &parallax.Options{AgentID: "a"}) }()
		p := &peer{s, agent, ended}
		p.send(`{"type":"register","id":"r1","payload":{"capabilities":["x"],"config":{"maxConcurrentTasks":2,"extensions":["task_accepted"]}}}`)
		p.receive("registered")
		r := s.requester()
		taken, lost := r.ask("a", "read this"), r.ask("a", "and this")
		stages := func(when string, want1, want2 core.Stage) {
			t.Helper()
			synctest.Wait()
			if got1, got2 := taken.Receipt().Stage, lost.Receipt().Stage; got1 != want1 || got2 != want2 {
				t.Errorf("%s: got the receipts %s and %s, want %s and %s", when, got1, got2, want1, want2)
			}
		}
		stages("nothing is read", core.StageAccepted, core.StageAccepted)
		assigned := decode[wire.Task](p, p.receive(wire.TypeTask))
		stages("one is read", core.StageDelivered, core.StageAccepted)
		p.send(`{"type":"task_accepted","id":"a1","payload":{"taskId":"` + assigned.TaskID + `","executionId":"` + assigned.ExecutionID + `"}}`)
		stages("and accepted", core.StageAcknowledged, core.StageAccepted)
		_ = agent.Close(link.Reason{Cause: link.PeerGone})
		<-ended
		stages("the agent is gone", core.StageAcknowledged, core.StageAccepted)
		if f := lost.Answer().Fault; f == nil || f.Code != core.CodeUnreachable {
			t.Errorf("what was never read: got %v, want it failed as unreachable", f)
		}
	})
}
