//go:build unix

package e2e

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
)

// soakChunk is small, so that the test ends soon. With 400 no buffer of the system holds the answer.
var soakChunk = flag.Int("soak.chunk", 12, "how many bytes of text a chunk for the slow reader has")

// burstAgent answers a prompt of the editors' protocol with 10,000 chunks of so many bytes.
const burstAgent = `read -r line; printf '%%s\n' '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}}'
read -r line; printf '%%s\n' '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
read -r line; awk 'BEGIN { for (i = 0; i < 10000; i++) printf "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"%%0%dd \"}}}}\n", i }'
printf '%%s\n' '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
cat >/dev/null`

// A child says 10,000 chunks as fast as it can. A reader of the REST stream takes 10 KB of the
// answer a second, from the first to the last. The child is not slowed, the hub keeps no more than
// the events of the task, and the reader gets every chunk once and in order.
func TestSoakASlowReaderGetsEveryChunkOfAChild(t *testing.T) {
	const chunks, bytesPerSecond = 10_000, 10_000
	size := *soakChunk
	h := newTestHub(t, func(c *config.Config) {
		c.WebSocket.WriteTimeout = ample
		c.Agents = config.Agents{{Name: "burst", Dialect: config.SpeaksEditor, Process: config.Process{Command: []string{"sh", "-c", fmt.Sprintf(burstAgent, size-1)}}}}
	})
	small := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error { // of what the system keeps for it
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10) })
	}}
	slow := &http.Client{Transport: &http.Transport{DialContext: small.DialContext, DisableKeepAlives: true}}
	ctx, cancel := context.WithTimeout(t.Context(), ample)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url()+"/v1/tasks", strings.NewReader(`{"to":"burst","content":"go","deadline_ms":3600000}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	before := heap()
	began := time.Now()
	resp, err := slow.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated && resp.StatusCode != http.StatusOK {
		t.Fatalf("got %s, want a stream of events", resp.Status)
	}

	lines := bufio.NewReaderSize(resp.Body, 1<<10)
	var next, taken int
	var most uint64
	var task struct{ State string }
	for seq := uint64(1); ; seq++ {
		e, _, err := readSSE(lines)
		if err != nil {
			t.Fatalf("after %d chunks: %v", next, err)
		}
		if e.Seq != seq {
			t.Fatalf("got sequence %d, want %d: nothing lost, nothing twice", e.Seq, seq)
		}
		if text, is := e.Body.(core.Text); is {
			if want := fmt.Sprintf("%0*d ", size-1, next); text.Text != want {
				t.Fatalf("got the chunk %.20q, want %.20q", text.Text, want)
			}
			next++
			taken += len(text.Text)
		}
		if e.Body.Kind().Ends() {
			if e.Body.Kind() != core.KindDone {
				t.Errorf("the task ended as %+v, want done", e.Body)
			}
			break
		}
		if next%1000 == 0 && next > 0 {
			now := heap()
			most = max(most, now-min(before, now))
		}
		if next == chunks/2 {
			hub := client.Hub{URL: h.url()}
			if err := hub.Client().Get(ctx, resp.Header.Get("Location"), &task); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Until(began.Add(time.Duration(taken) * time.Second / bytesPerSecond))) // the pace of the reader
	}
	if next != chunks {
		t.Errorf("got %d chunks, want %d", next, chunks)
	}
	if task.State != core.KindDone.String() {
		t.Errorf("when the reader had half of it the task was %q, want done: the child waits for nobody", task.State)
	}
	kept := uint64(3 * chunks * (size + 300)) // an event, its form in the journal, and what is around them
	if most > kept+8<<20 {
		t.Errorf("the hub kept %d more bytes, want at most the %d of the events and 8 MiB", most, kept)
	}
	if took, least := time.Since(began), time.Duration(chunks*size)*time.Second/bytesPerSecond*9/10; took < least {
		t.Errorf("the reader took %v, want at least %v: it was not slow", took, least)
	}
	t.Logf("%d chunks of %d bytes in %v, at most %d more bytes in memory", next, size, time.Since(began).Round(time.Millisecond), most)
}

// heap returns how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
