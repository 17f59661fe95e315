package acp_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

// The receipt says delivered once the agent's transport took the query, and not
// while it is queued: an agent that stops reading and then leaves got nothing.
func TestSuccessReceiptMessageLost(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		ours, theirs := coretest.Pipe[[]byte, []byte](0) // a write waits for the reader
		ended := make(chan link.Reason, 1)
		var served sync.WaitGroup
		served.Go(func() { ended <- acp.Serve(context.Background(), s.hub, ours, &acp.Options{Peers: s.peers}) })
		kit := &peer{setup: s, conn: theirs, ended: ended, name: "kit"}
		kit.send(`{"v":1,"id":"h","from":"kit","kind":"hello","ref":"none","payload":{"protocol_versions":[1]}}`)
		kit.expect(wire.KindDiscover)
		kit.send(`{"v":1,"id":"c","from":"kit","kind":"capabilities","payload":{"domains":["x"],"max_concurrent_tasks":2,"extensions":["progress"]}}`)
		s.until(func() bool { _, ok := s.hub.Agent(core.Principal{Operator: true}, "kit"); return ok }, "kit is an agent")
		r := s.plainSession("r")
		taken := s.ask(r, core.Request{To: core.ToAgent("kit"), Content: "read this"})
		lost := s.ask(r, core.Request{To: core.ToAgent("kit"), Content: "and this"})
		stages := func(when string, want1, want2 core.Stage) {
			t.Helper()
			synctest.Wait()
			if got1, got2 := taken.Receipt().Stage, lost.Receipt().Stage; got1 != want1 || got2 != want2 {
				t.Errorf("%s: got the receipts %s and %s, want %s and %s", when, got1, got2, want1, want2)
			}
		}
		stages("nothing is read", core.StageAccepted, core.StageAccepted)
		query := kit.expect(wire.KindQuery)
		stages("one is read", core.StageDelivered, core.StageAccepted)
		kit.send(`{"v":1,"id":"p","from":"kit","kind":"progress","ref":"%s","payload":{"seq":1,"accepted":0}}`, query.ID)
		stages("and taken on", core.StageAcknowledged, core.StageAccepted)
		kit.disconnect()
		served.Wait()
		stages("the agent is gone", core.StageAcknowledged, core.StageAccepted)
		if f := lost.Answer().Fault; f == nil || f.Code != core.CodeUnreachable {
			t.Errorf("a query that was never read: got %v, want unreachable", f)
		}
	})
}
