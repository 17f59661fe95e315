package supervisor_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// burstAgent answers a prompt of the editor's protocol with 10,000 chunks.
const burstAgent = `read -r line; printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}}'
read -r line; printf '%s\n' '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
read -r line; awk 'BEGIN { for (i = 0; i < 10000; i++) printf "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"%d \"}}}}\n", i }'
printf '%s\n' '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
cat >/dev/null`

func TestASlowReaderGetsEveryChunkOfAChild(t *testing.T) {
	s := supervise(t, nil, config.Agent{Name: "burst", Dialect: config.SpeaksEditor, Process: config.Process{Command: []string{"sh", "-c", burstAgent}}})
	s.until("burst", core.ChildReady)
	asked, err := s.user.Open(core.Request{To: core.ToAgent("burst"), Content: "go"}, hub.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var want, got strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&want, "%d ", i)
	}
	const bytesPerSecond, slowBytes = 10_000, 10_000 // slow until the child has long finished
	for {
		b, err := s.user.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ended := false
		for _, e := range b.Events {
			if text, ok := e.Body.(core.Text); ok {
				got.WriteString(text.Text)
			}
			ended = ended || e.Body.Kind().Ends()
		}
		if ended {
			break
		}
		if n := got.Len(); n < slowBytes {
			<-time.After(time.Second * 100 / bytesPerSecond)
		}
	}
	if got.String() != want.String() {
		t.Errorf("got %d bytes, want the %d of 10,000 chunks in order", got.Len(), want.Len())
	}
	if a := asked.Answer(); a.End != core.KindDone {
		t.Errorf("the task ended as %s (%v), want done", a.End, a.Fault)
	}
}
