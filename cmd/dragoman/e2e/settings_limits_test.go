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
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

// never is a setting of a hub that does something only long after a test.
const never = time.Hour

// bareConn connects to an address of the hub by TCP.
func bareConn(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(watchdog)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// soon ends what is read and written at a connection in a moment: it is for what has come already.
func soon(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
}

// bareHTTP2 opens an HTTP/2 connection without a client library.
func bareHTTP2(t *testing.T, addr string) *http2.Framer {
	t.Helper()
	return onHTTP2(t, bareConn(t, addr))
}

func onHTTP2(t *testing.T, conn net.Conn) *http2.Framer {
	t.Helper()
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	f := http2.NewFramer(conn, conn)
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return f
}

// A hub that pings early is compared with one that pings late: by default both would do it at the same time.
func TestTheWebSocketKeepaliveIsASetting(t *testing.T) {
	tier.Full(t, "it waits for pings that come, and for some that do not")
	hubs := map[string]*testHub{}
	for name, interval := range map[string]time.Duration{"early": 50 * time.Millisecond, "late": never} {
		hubs[name] = newTestHub(t, func(c *config.Config) {
			c.WebSocket.PingInterval, c.WebSocket.PingTimeout = interval, 50*time.Millisecond
		})
	}
	for _, target := range []string{"/ws/agent", "/ws/acp?agent_id=mute", "/ws/pi", "/ws/editor?agent=x", "/"} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			open := func(h *testHub) (net.Conn, *bufio.Reader) {
				addr := h.service.Addresses().HTTP
				if target == "/" {
					addr = h.service.Addresses().Pi
				}
				return bareWebSocket(t, addr, target)
			}
			kept, late := open(hubs["late"])
			_, early := open(hubs["early"])
			pings, err := unansweredPings(early)
			if errors.Is(err, os.ErrDeadlineExceeded) || pings == 0 {
				t.Errorf("got %d pings and %v, want a ping and, without a pong, the end", pings, err)
			}
			soon(t, kept)
			if pings, err := unansweredPings(late); !errors.Is(err, os.ErrDeadlineExceeded) || pings > 0 {
				t.Errorf("got %d pings and %v of a hub that pings after %v, want none", pings, err, never)
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

// deafPeer is a peer that asks and takes no answers.
type deafPeer struct {
	conn net.Conn
	rest []byte // of what it is sending
}

// fill sends until the hub has taken nothing for so long, or has closed the connection.
func (p *deafPeer) fill(patience time.Duration) error {
	for {
		if len(p.rest) == 0 { // a masked text each, of fewer than 126 bytes, all of one id
			for range 1000 {
				const ask = `{"id":"d","from":"deaf","v":1,"kind":"query","payload":{}}`
				p.rest = append(append(p.rest, 0x81, 0x80|byte(len(ask)), 0, 0, 0, 0), ask...)
			}
		}
		if err := p.conn.SetDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		n, err := p.conn.Write(p.rest)
		if p.rest = p.rest[n:]; n == 0 {
			return err
		}
	}
}

// A hub that gives a peer up early is compared with one that does it late, whose peer has stalled before:
// by default it would be given up before, too.
func TestTheWebSocketWriteTimeoutIsASetting(t *testing.T) {
	tier.Full(t, "it waits until a write has taken a second")
	deaf := func(timeout time.Duration) *deafPeer {
		h := newTestHub(t, func(c *config.Config) { c.WebSocket.WriteTimeout = timeout })
		conn, _ := bareWebSocket(t, h.service.Addresses().HTTP, "/ws/acp?agent_id=deaf")
		return &deafPeer{conn: conn}
	}
	const moment = 100 * time.Millisecond
	late := deaf(never)
	_ = late.fill(moment)
	if err := deaf(time.Second).fill(watchdog); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a peer that takes nothing: got it kept, want it closed after a second")
	}
	if err := late.fill(moment); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a peer that takes nothing, of a hub that waits for %v: got %v, want it kept", never, err)
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

// A hub that pings early is compared with one that pings late: by default both would do it at the same time.
func TestTheGRPCKeepaliveIsASetting(t *testing.T) {
	tier.Full(t, "it waits for a ping after a second, and for its answer another one")
	open := func(interval time.Duration) (net.Conn, *http2.Framer) {
		h := newTestHub(t, func(c *config.Config) { c.GRPC.PingInterval, c.GRPC.PingTimeout = interval, time.Second })
		conn := bareConn(t, h.service.Addresses().GRPC)
		return conn, onHTTP2(t, conn)
	}
	kept, late := open(never)
	_, early := open(time.Second)
	if pings, err := http2Pings(early); errors.Is(err, os.ErrDeadlineExceeded) || pings == 0 {
		t.Errorf("got %d pings and %v, want a ping and, without a pong, the end", pings, err)
	}
	soon(t, kept)
	if pings, err := http2Pings(late); !errors.Is(err, os.ErrDeadlineExceeded) || pings > 0 {
		t.Errorf("got %d pings and %v of a hub that pings after %v, want none", pings, err, never)
	}
}

// http2Pings reads the frames of HTTP/2 to their end and counts the pings.
func http2Pings(f *http2.Framer) (pings int, err error) {
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return pings, err
		}
		if p, ok := frame.(*http2.PingFrame); ok && !p.IsAck() {
			pings++
		}
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
		ctx, cancel := context.WithTimeout(t.Context(), watchdog)
		defer cancel()
		send := func(kind string, payload any) error {
			return conn.Send(ctx, plainJSON(map[string]any{"type": kind, "id": kind, "timestamp": "2026-01-02T03:04:05Z", "payload": payload}))
		}
		const beats = 15000 // longer than the test waits, at the default of 100 a second
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
