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

// faulty returns a registered peer whose messages to the hub meet a fault.
func (s *setup) faulty(id string, in coretest.Fault) (*peer, *coretest.Faulty[[]byte, []byte]) {
	s.Helper()
	conn, far := coretest.Pipe[[]byte, []byte](4)
	broken := coretest.Break(far, in, coretest.Fault{})
	ended := make(chan link.Reason, 1)
	go func() { ended <- parallax.Serve(context.Background(), s.hub, broken, &parallax.Options{AgentID: id}) }()
	s.Cleanup(func() {
		broken.Release()
		_ = conn.Close(link.Reason{Cause: link.Normal})
		synctest.Wait()
	})
	p := &peer{s, conn, ended}
	p.send(`{"type":"register","id":"r1","payload":{"capabilities":["x"]}}`)
	p.receive(wire.TypeRegistered)
	return p, broken
}

const aResult = `{"type":"task_result","id":"m","payload":{"taskId":"TASK","executionId":"EXEC","status":"completed","result":"late"}}`

func TestADuplicateResultIsIgnored(t *testing.T) {
	withHub(t, func(s *setup) {
		a, _ := s.faulty("a", coretest.Fault{Duplicate: 2})
		asker := s.requester()
		opened := asker.ask("a", "hello")
		assigned := decode[wire.Task](a, a.receive(wire.TypeTask))
		a.send(withIDs(aResult, assigned))
		if got := kinds(asker.events(opened)); strings.Count(got, "done") != 1 {
			t.Errorf("got %s, want one end", got)
		}
		synctest.Wait()
		s.expectCount("parallax.ignored.late", 1)
	})
}

func TestATaskOfALostConnectionIsReassigned(t *testing.T) {
	withHub(t, func(s *setup) {
		a, _ := s.faulty("a", coretest.Fault{Cut: 2})
		asker := s.requester()
		b := s.registered(parallax.Options{AgentID: "b"}, `{"capabilities":["x"]}`)
		opened := asker.open(core.Request{To: core.ToCapability("x"), Content: "hello"})
		assigned := decode[wire.Task](a, a.receive(wire.TypeTask))
		a.send(`{"type":"heartbeat","id":"h","payload":{"status":"healthy","activeTasks":1}}`) // the last message before the cut
		again := decode[wire.Task](b, b.receive(wire.TypeTask))
		if again.TaskID != assigned.TaskID || again.ExecutionID == assigned.ExecutionID {
			t.Errorf("got %s and %s, want the task %s in a new execution", again.TaskID, again.ExecutionID, assigned.TaskID)
		}
		b.send(withIDs(aResult, again))
		if got := kinds(asker.events(opened)); got != "opened assigned retrying assigned accepted text done" {
			t.Errorf("got %s, want it tried again and done", got)
		}
	})
}

func TestMessagesOfAReplacedConnectionAreIgnored(t *testing.T) {
	withHub(t, func(s *setup) {
		old, broken := s.faulty("a", coretest.Fault{Stall: 2})
		b := s.registered(parallax.Options{AgentID: "b"}, `{"capabilities":["x"]}`)
		asker := s.requester()
		opened := asker.open(core.Request{To: core.ToCapability("x"), Content: "hello"})
		assigned := decode[wire.Task](old, old.receive(wire.TypeTask))
		old.send(withIDs(aResult, assigned)) // it arrives after the replacement
		newer := s.connect(parallax.Options{AgentID: "a"})
		began := time.Now()
		newer.send(`{"type":"register","id":"r2","payload":{"capabilities":["y"]}}`)
		if m := newer.receive(wire.TypeRegistered); m.ID != "r2" || time.Since(began) != 2*time.Second {
			t.Errorf("got %s after %v, want it registered after 2 s", m.ID, time.Since(began))
		}
		broken.Release()
		again := decode[wire.Task](b, b.receive(wire.TypeTask))
		b.send(withIDs(strings.Replace(aResult, "late", "in time", 1), again))
		if got := asker.answer(opened); got.Text != "in time" {
			t.Errorf("got %+v, want the answer of b alone", got)
		}
	})
}
