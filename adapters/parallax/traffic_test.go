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

// countsOf are what was counted, by direction and type.
func countsOf(t *parallax.Traffic) map[string]int64 {
	all := map[string]int64{}
	t.Each(func(direction, kind string, messages int64, _ time.Duration) { all[direction+" "+kind] = messages })
	return all
}

func TestEveryMessageIsCountedOnceHoweverOftenItWasWritten(t *testing.T) {
	onStage(t, func(s *stage) {
		traffic := parallax.NewTraffic()
		p := s.registered(parallax.Options{AgentID: "a", MaxMessageBytes: 2000, Traffic: traffic}, `{"capabilities":[],"config":{"maxConcurrentTasks":2,"extensions":["task_request","task_progress"]}}`)
		asker := s.hub.Connect(hub.Identity{Principal: core.Principal{ID: "r"}, Dialect: "test"})
		defer asker.Close(nil)
		// Its history does not fit, and is cut until it does.
		var history []core.Turn
		for i := range 8 {
			history = append(history, core.Turn{Role: core.RoleUser, Text: fmt.Sprint(i, strings.Repeat("x", 500))})
		}
		if _, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "hello", History: history}, hub.OpenOptions{Unwatched: true}); err != nil {
			t.Fatal(err)
		}
		p.hear(wire.TypeTask)
		// This fits without any and is not sent at all.
		if _, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: strings.Repeat("x", 3000)}, hub.OpenOptions{Unwatched: true}); err != nil {
			t.Fatal(err)
		}
		p.say(`{"type":"heartbeat","id":"h","payload":{"status":"` + strings.Repeat("x", 3000) + `"}}`)
		p.refused(wire.CodeMessageTooLarge)
		p.say(`no JSON`)
		p.refused(wire.CodeInvalidMessage)
		p.say(`{"type":"heartbeat","id":"h","payload":{}}`)
		p.hear(wire.TypeHeartbeatAck)
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
