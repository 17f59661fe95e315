package e2e

import (
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

func TestThePiCommandLimitsAreSettings(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) {
		c.Pi.Outcomes, c.Pi.KeyTTL, c.Pi.DependencyTimeout, c.Pi.InFlight = 2, time.Nanosecond, 10*time.Millisecond, 2
	})
	muteAgent(t, h.service.Addresses().GRPC)
	c := dialPi(t, &servedHub{Client: &client.Client{URL: h.url()}})
	name := func(id, name, key string) map[string]any {
		m := map[string]any{"id": id, "type": "set_session_name", "sessionId": "t", "name": name}
		if key != "" {
			m["idempotencyKey"] = key
		}
		return m
	}
	want := func(what string, command map[string]any, text string) {
		t.Helper()
		if f := c.do(command); f.Error != text {
			t.Errorf("%s: got %s, want the error %q", what, f.Raw, text)
		}
	}
	c.do(map[string]any{"type": "create_session", "sessionId": "s", "agent": "mute"})
	c.do(map[string]any{"type": "create_session", "sessionId": "t"})
	want("an id", name("a", "one", ""), "")
	want("another", name("b", "one", ""), "")
	want("the first, which is remembered yet", name("a", "two", ""), "Conflicting id 'a': previously used for 'set_session_name', now used for 'set_session_name'")
	want("a third", name("c", "one", ""), "")
	want("the first, which is forgotten", name("a", "two", ""), "")
	want("a key", name("k1", "one", "k"), "")
	want("a key whose time is over", name("k2", "two", "k"), "")

	c.send(map[string]any{"id": "p", "type": "prompt", "sessionId": "s", "message": "never answered"})
	c.waitFrame("command_started", `"p"`)
	waits := name("w", "one", "")
	waits["dependsOn"] = []string{"p"}
	want("a dependency that takes too long", waits, "Command 'dependsOn:p' timed out after 10ms")
	c.send(map[string]any{"id": "q", "type": "prompt", "sessionId": "s", "message": "waits"})
	c.waitFrame("command_accepted", `"q"`)
	want("one too many in flight", name("x", "one", ""), "Server busy - too many concurrent commands. Please retry.")
}
