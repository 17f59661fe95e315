package e2e

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
)

// early is well before the default keepalive would do anything.
const early = 12 * time.Second

// bareConn connects to an address of the hub by TCP.
func bareConn(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(early)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// bareHTTP2 opens an HTTP/2 connection without a client library.
func bareHTTP2(t *testing.T, addr string) *http2.Framer {
	t.Helper()
	conn := bareConn(t, addr)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	f := http2.NewFramer(conn, conn)
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestTheWebSocketKeepaliveIsASetting(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) {
		c.WebSocket.PingInterval, c.WebSocket.PingTimeout = 50*time.Millisecond, 50*time.Millisecond
	})
	for target, addr := range map[string]string{
		"/ws/agent": h.service.Addresses().HTTP, "/ws/acp?agent_id=mute": h.service.Addresses().HTTP, "/ws/pi": h.service.Addresses().HTTP, "/ws/editor?agent=x": h.service.Addresses().HTTP, "/": h.service.Addresses().Pi,
	} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			_, r := bareWebSocket(t, addr, target)
			pings, err := unansweredPings(r)
			if errors.Is(err, os.ErrDeadlineExceeded) || pings == 0 {
				t.Errorf("got %d pings and %v, want a ping and, without a pong, the end", pings, err)
			}
		})
	}
}

// bareWebSocket opens a WebSocket without a client library.
func bareWebSocket(t *testing.T, addr, path string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn := bareConn(t, addr)
	_, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("got %v and %v, want a WebSocket", resp, err)
	}
	return conn, r
}

func TestTheWebSocketWriteTimeoutIsASetting(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) { c.WebSocket.WriteTimeout = time.Second })
	conn, _ := bareWebSocket(t, h.service.Addresses().HTTP, "/ws/acp?agent_id=deaf")
	var frames []byte // a masked text each, of fewer than 126 bytes, all of one id
	for range 1000 {
		const ask = `{"id":"d","from":"deaf","v":1,"kind":"query","payload":{}}`
		frames = append(append(frames, 0x81, 0x80|byte(len(ask)), 0, 0, 0, 0), ask...)
	}
	for { // each is answered with an error, which is not read
		if _, err := conn.Write(frames); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("a peer that takes nothing: got it kept, want it closed within a second")
		} else if err != nil {
			return
		}
	}
}

// unansweredPings reads the frames of a WebSocket to its end and counts the pings.
func unansweredPings(r *bufio.Reader) (pings int, err error) {
	const ping = 0x9
	for {
		head := make([]byte, 2)
		if _, err := io.ReadFull(r, head); err != nil {
			return pings, err
		}
		size := uint64(head[1] & 0x7f)
		if more := map[uint64]int{126: 2, 127: 8}[size]; more > 0 {
			long := make([]byte, 8)
			if _, err := io.ReadFull(r, long[8-more:]); err != nil {
				return pings, err
			}
			size = binary.BigEndian.Uint64(long)
		}
		if _, err := io.CopyN(io.Discard, r, int64(size)); err != nil {
			return pings, err
		}
		if head[0]&0xf == ping {
			pings++
		}
	}
}

func TestTheGRPCKeepaliveIsASetting(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) { c.GRPC.PingInterval, c.GRPC.PingTimeout = time.Second, time.Second })
	f := bareHTTP2(t, h.service.Addresses().GRPC)
	pings := 0
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) || pings == 0 {
				t.Errorf("got %d pings and %v, want a ping and, without a pong, the end", pings, err)
			}
			return
		}
		if p, ok := frame.(*http2.PingFrame); ok && !p.IsAck() {
			pings++
		}
	}
}

func TestTheGRPCMinClientPingIsASetting(t *testing.T) {
	for _, c := range []struct {
		least time.Duration
		away  bool
	}{{time.Nanosecond, false}, {time.Hour, true}} {
		t.Run(c.least.String(), func(t *testing.T) {
			h := newTestHub(t, func(config *config.Config) { config.GRPC.MinClientPing = c.least })
			f := bareHTTP2(t, h.service.Addresses().GRPC)
			const pings = 6
			for i := range pings {
				if err := f.WritePing(false, [8]byte{byte(i)}); err != nil {
					t.Fatal(err)
				}
			}
			away := false
			for answers := 0; answers < pings && !away; {
				frame, err := f.ReadFrame()
				if err != nil {
					break
				}
				switch frame := frame.(type) {
				case *http2.PingFrame:
					answers++
				case *http2.GoAwayFrame:
					away = frame.ErrCode == http2.ErrCodeEnhanceYourCalm
				}
			}
			if away != c.away {
				t.Errorf("a client that pings at once: got it sent away %t, want %t", away, c.away)
			}
		})
	}
}

func TestTheConnectionLimitIsASetting(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) { c.GRPC.Connections, c.HTTP.Connections = 1, 1 })
	t.Run("gRPC", func(t *testing.T) {
		first := bareHTTP2(t, h.service.Addresses().GRPC)
		if _, err := first.ReadFrame(); err != nil {
			t.Fatalf("the first: got %v, want it served", err)
		}
		if n, err := bareConn(t, h.service.Addresses().GRPC).Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the second: got %d bytes and %v, want it closed", n, err)
		}
	})
	for name, addr := range map[string]string{"HTTP": h.service.Addresses().HTTP, "pi-server": h.service.Addresses().Pi} {
		t.Run(name, func(t *testing.T) {
			ask := func() int {
				conn := bareConn(t, addr)
				if _, err := io.WriteString(conn, "GET /v1/hub HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				return resp.StatusCode
			}
			if got := ask(); got == http.StatusServiceUnavailable {
				t.Errorf("the first: got %d, want it served", got)
			}
			if got := ask(); got != http.StatusServiceUnavailable {
				t.Errorf("the second: got %d, want %d", got, http.StatusServiceUnavailable)
			}
		})
	}
}

func TestTheBodyLimitsAreSettings(t *testing.T) {
	const tooLarge = http.StatusRequestEntityTooLarge
	for _, c := range []struct {
		rest, acp         int // the limits
		restSize, acpSize int
		restWant, acpWant int
	}{
		{2000, 3000, 2500, 2500, tooLarge, http.StatusOK},
		{3000, 2000, 2500, 2500, http.StatusCreated, tooLarge},
		{2_000_000, 1_000_000, 1_500_000, 100, http.StatusCreated, http.StatusOK},
		{1_000_000, 2_000_000, 100, 1_500_000, http.StatusCreated, http.StatusOK},
	} {
		h := newTestHub(t, func(config *config.Config) { config.REST.BodyBytes, config.ACP.EnvelopeBytes = c.rest, c.acp })
		h.startAgent(t, parallax.Dialect, "actor", 4)
		task := plainJSON(map[string]any{"to": "actor", "content": "say " + h.key() + "\n" + strings.Repeat("x", c.restSize)})
		ping := plainJSON(map[string]any{"v": 1, "id": "q", "from": "asker", "kind": "ping", "payload": map[string]any{}, "note": strings.Repeat("x", c.acpSize)})
		for path, sent := range map[string]struct {
			body []byte
			want int
		}{"/v1/tasks": {task, c.restWant}, "/acp": {ping, c.acpWant}} {
			status, answer := post(t, h.service.Addresses().HTTP, path, string(sent.body), nil)
			if status != sent.want || (status == tooLarge) != strings.Contains(answer, "too_large") {
				t.Errorf("rest.body_bytes %d, acp.envelope_bytes %d: got %d and %.200s for %d bytes to %s, want %d",
					c.rest, c.acp, status, answer, len(sent.body), path, sent.want)
			}
		}
	}
}

func TestTheRESTDeadlineIsASetting(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) { c.REST.Deadline = 200 * time.Millisecond })
	h.startAgent(t, parallax.Dialect, "actor", 1)
	key := h.key()
	status, answer := post(t, h.service.Addresses().HTTP, "/v1/tasks?wait=true", `{"to":"actor","content":"hang `+key+`"}`, nil)
	if status != http.StatusOK || !strings.Contains(answer, `"timeout"`) {
		t.Errorf("got %d and %s, want a failure of code timeout", status, answer)
	}
	if end, ok := h.end(t, key).(core.Failed); !ok || end.Fault.Code != core.CodeTimeout {
		t.Errorf("got the end %#v at the hub, want a failure of code timeout", end)
	}
}

func TestHistoryBytesCanBeZero(t *testing.T) {
	for _, c := range []struct{ bytes, turns int }{{64 << 10, 2}, {0, 0}} {
		h := newTestHub(t, func(config *config.Config) { config.Limits.HistoryBytes = c.bytes })
		h.startAgent(t, parallax.Dialect, "actor", 1)
		var key string
		for range 2 {
			key = h.key()
			post(t, h.service.Addresses().HTTP, "/v1/tasks?wait=true", `{"to":"actor","thread":"t","content":"say `+key+`"}`, nil)
		}
		if got := len(h.await(t, key+" begun").(core.Request).History); got != c.turns {
			t.Errorf("limits.history_bytes %d: got %d earlier turns, want %d", c.bytes, got, c.turns)
		}
	}
}

func TestTheParallaxMessageRateCanBeUnlimited(t *testing.T) {
	for _, limit := range []int{0, -1} {
		h := newTestHub(t, func(c *config.Config) { c.Parallax.MessagesPerSecond = limit })
		conn := dialFrames(t, h.service.Addresses().HTTP, "/ws/agent", client.MaxParallaxBytes)
		ctx, cancel := context.WithTimeout(t.Context(), early)
		defer cancel()
		send := func(kind string, payload any) error {
			return conn.Send(ctx, plainJSON(map[string]any{"type": kind, "id": kind, "timestamp": "2026-01-02T03:04:05Z", "payload": payload}))
		}
		const beats = 3000 // half a minute at the default of 100 a second
		sent := make(chan error, 1)
		go func() {
			err := send("register", map[string]any{"agentId": "quick", "capabilities": []string{"acting"}})
			for range beats {
				err = errors.Join(err, send("heartbeat", map[string]any{}))
			}
			sent <- err
		}()
		for got := 0; got < beats; {
			frame, err := conn.Receive(ctx)
			if err != nil {
				t.Fatalf("parallax.messages_per_second %d: got %v behind %d answers, want %d", limit, err, got, beats)
			}
			var m struct{ Type string }
			if json.Unmarshal(frame, &m) == nil && m.Type == "heartbeat_ack" {
				got++
			}
		}
		if err := <-sent; err != nil {
			t.Errorf("sending: got %v, want no error", err)
		}
		conn.cut()
	}
}
