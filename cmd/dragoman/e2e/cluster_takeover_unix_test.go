//go:build unix

package e2e

import (
	"context"
	"strings"
	"testing"
)

// A client of pi asks at one hub, and the hub of the agent is killed while the answer comes: the run ends as soon as
// another hub has taken the task over.
func TestARunOfPiEndsOnceTheHubOfItsAgentIsTakenOver(t *testing.T) {
	t.Setenv("DRAGOMAN_PI_RETRIES", "0")
	all := startCluster(t, 3)
	c := piAt(t, all[0])
	home, far := piHome(t, all), all[1]
	if far == home {
		far = all[2]
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	go runWith(ctx, "", "agent", "--dialect", "native", "--name", "talker", "--hub", far.URL, "--", "sh", "-c", "while echo on and on; do sleep 0.01; done")
	home.until("the agent is there", func() error {
		code, out, _ := run(t, "agents", "--hub", home.URL)
		return notYet(code == 0 && strings.Contains(out, "talker"), out)
	})
	for _, command := range []map[string]any{
		{"type": "create_session", "sessionId": "s", "agent": "talker"}, {"type": "switch_session", "sessionId": "s"},
	} {
		if f := c.do(command); !f.Success {
			t.Fatalf("%s: got %s", command["type"], f.Raw)
		}
	}
	c.send(map[string]any{"id": "p", "type": "prompt", "sessionId": "s", "message": "talk"})
	for range 20 {
		c.waitFrame("text_delta", "on and on")
	}
	far.kill()
	c.waitFrame(`"agent_end"`)
	c.waitFrame(`"id":"p"`, `"type":"response"`)
	if f := c.do(map[string]any{"type": "get_state", "sessionId": "s"}); strings.Contains(string(f.Data), `"isStreaming":true`) {
		t.Errorf("got the state %s, want the run over", f.Data)
	}
}
