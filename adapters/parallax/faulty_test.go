package parallax_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

// faulty is a registered peer whose messages meet faults on their way to the hub.
func (s *stage) faulty(id string, in coretest.Fault) (*peer, *coretest.Faulty[[]byte, []byte]) {
	s.Helper()
	conn, far := coretest.Pipe[[]byte, []byte](4)
	broken := coretest.Break(far, in, coretest.Fault{})
	ended := make(chan link.Reason, 1)
	go func() { ended <- parallax.Serve(context.Background(), s.hub, broken, parallax.Options{AgentID: id}) }()
	s.Cleanup(func() {
		broken.Release()
		_ = conn.Close(link.Reason{Cause: link.Normal})
		synctest.Wait()
	})
	p := &peer{s, conn, ended}
	p.say(`{"type":"register","id":"r1","payload":{"capabilities":["x"]}}`)
	p.hear(wire.TypeRegistered)
	return p, broken
}

const aResult = `{"type":"task_result","id":"m","payload":{"taskId":"TASK","executionId":"EXEC","status":"completed","result":"late"}}`

func TestAResultThatArrivesTwiceCountsOnce(t *testing.T) {
	onStage(t, func(s *stage) {
		a, _ := s.faulty("a", coretest.Fault{Duplicate: 2})
		asker := s.asker()
		asked := asker.ask("a", "hello")
		given := inside[wire.Task](a, a.hear(wire.TypeTask))
		a.say(fill(aResult, given))
		if got := kinds(asker.events(asked)); strings.Count(got, "done") != 1 {
			t.Errorf("got %s, want one end", got)
		}
		synctest.Wait()
		s.counted("parallax.ignored.late", 1)
	})
}

func TestATaskOfAConnectionThatIsCutGoesToAnotherAgent(t *testing.T) {
	onStage(t, func(s *stage) {
		a, _ := s.faulty("a", coretest.Fault{Cut: 2})
		asker := s.asker()
		b := s.registered(parallax.Options{AgentID: "b"}, `{"capabilities":["x"]}`)
		asked := asker.open(core.Request{To: core.ToCapability("x"), Content: "hello"})
		given := inside[wire.Task](a, a.hear(wire.TypeTask))
		a.say(`{"type":"heartbeat","id":"h","payload":{"status":"healthy","activeTasks":1}}`) // the last that arrives
		again := inside[wire.Task](b, b.hear(wire.TypeTask))
		if again.TaskID != given.TaskID || again.ExecutionID == given.ExecutionID {
			t.Errorf("got %s and %s, want the task %s in a new execution", again.TaskID, again.ExecutionID, given.TaskID)
		}
		b.say(fill(aResult, again))
		if got := kinds(asker.events(asked)); got != "opened assigned retrying assigned accepted text done" {
			t.Errorf("got %s, want it tried again and done", got)
		}
	})
}

func TestWhatASilentConnectionSaysOnceItIsReplacedComesToNothing(t *testing.T) {
	onStage(t, func(s *stage) {
		old, broken := s.faulty("a", coretest.Fault{Stall: 2})
		b := s.registered(parallax.Options{AgentID: "b"}, `{"capabilities":["x"]}`)
		asker := s.asker()
		asked := asker.open(core.Request{To: core.ToCapability("x"), Content: "hello"})
		given := inside[wire.Task](old, old.hear(wire.TypeTask))
		old.say(fill(aResult, given)) // it is held up on the way
		newer := s.connect(parallax.Options{AgentID: "a"})
		began := time.Now()
		newer.say(`{"type":"register","id":"r2","payload":{"capabilities":["y"]}}`)
		if m := newer.hear(wire.TypeRegistered); m.ID != "r2" || time.Since(began) != 2*time.Second {
			t.Errorf("got %s after %v, want it in after 2 s", m.ID, time.Since(began))
		}
		broken.Release()
		again := inside[wire.Task](b, b.hear(wire.TypeTask))
		b.say(fill(strings.Replace(aResult, "late", "in time", 1), again))
		if got := asker.answer(asked); got.Text != "in time" {
			t.Errorf("got %+v, want the answer of b alone", got)
		}
	})
}
