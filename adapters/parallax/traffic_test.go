package parallax_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// countsOf returns the counts by direction and type.
func countsOf(t *parallax.Traffic) map[string]int64 {
	all := map[string]int64{}
	t.Each(func(direction, kind string, messages int64, _ time.Duration) { all[direction+" "+kind] = messages })
	return all
}

func TestEveryMessageIsCountedOnce(t *testing.T) {
	withHub(t, func(s *setup) {
		traffic := parallax.NewTraffic()
		p := s.registered(parallax.Options{AgentID: "a", MaxMessageBytes: 2000, Traffic: traffic}, `{"capabilities":[],"config":{"maxConcurrentTasks":2,"extensions":["task_request","task_progress"]}}`)
		asker := s.hub.Connect(hub.Identity{Principal: core.Principal{ID: "r"}, Dialect: "test"})
		defer asker.Close(nil)
		// Some turns of the history are omitted, so the frame is encoded more than once.
		var history []core.Turn
		for i := range 8 {
			history = append(history, core.Turn{Role: core.RoleUser, Text: fmt.Sprint(i, strings.Repeat("x", 500))})
		}
		if _, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "hello", History: history}, hub.OpenOptions{Unwatched: true}); err != nil {
			t.Fatal(err)
		}
		p.receive(wire.TypeTask)
		// This one does not fit at all and is not sent.
		if _, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: strings.Repeat("x", 3000)}, hub.OpenOptions{Unwatched: true}); err != nil {
			t.Fatal(err)
		}
		p.send(`{"type":"heartbeat","id":"h","payload":{"status":"` + strings.Repeat("x", 3000) + `"}}`)
		p.expectError(wire.CodeMessageTooLarge)
		p.send(`no JSON`)
		p.expectError(wire.CodeInvalidMessage)
		p.send(`{"type":"heartbeat","id":"h","payload":{}}`)
		p.receive(wire.TypeHeartbeatAck)
		synctest.Wait()
		want := map[string]int64{
			"received register": 1, "received heartbeat": 1, "received unknown": 2,
			"sent registered": 1, "sent task": 1, "sent error": 2, "sent heartbeat_ack": 1,
		}
		if diff := cmp.Diff(want, countsOf(traffic)); diff != "" {
			t.Errorf("the counts differ (-want +got):\n%s", diff)
		}
	})
}
