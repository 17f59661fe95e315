package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/metadata"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// flood is a gRPC connection that sends bodies as fast as the server's windows allow, whatever
// the server says of its calls.
type flood struct {
	framer *http2.Framer

	mu      sync.Mutex
	changed *sync.Cond
	conn    int64 // what the connection may send
	first   int64 // what a new stream may send
	streams []*floodStream
	gone    bool
}

type floodStream struct {
	id             uint32
	window, unsent int64
	begun          bool // its first bytes were sent
	over           bool // the server has ended it
}

// newFlood begins n calls of a method with a body of size bytes each, without a token.
func newFlood(t *testing.T, addr, method string, n int, size int64) *flood {
	t.Helper()
	f := &flood{framer: bareHTTP2(t, addr), conn: 65_535, first: 65_535}
	f.changed = sync.NewCond(&f.mu)
	settings := make(chan struct{})
	go f.read(sync.OnceFunc(func() { close(settings) }))
	<-settings
	var head bytes.Buffer
	fields := hpack.NewEncoder(&head)
	for i := range n {
		head.Reset()
		for _, h := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", method}, {":authority", "localhost"}, {"content-type", "application/grpc"}, {"te", "trailers"}} {
			if err := fields.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}); err != nil {
				t.Fatal(err)
			}
		}
		f.mu.Lock()
		s := &floodStream{id: uint32(2*i + 1), window: f.first, unsent: size + 5}
		f.streams = append(f.streams, s)
		f.mu.Unlock()
		if err := f.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: head.Bytes(), EndHeaders: true}); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// read follows the windows until the connection ends.
func (f *flood) read(settled func()) {
	for {
		frame, err := f.framer.ReadFrame()
		f.mu.Lock()
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if v, ok := frame.Value(http2.SettingInitialWindowSize); ok {
				f.first = int64(v)
			}
			if !frame.IsAck() {
				settled()
			}
		case *http2.WindowUpdateFrame:
			if frame.StreamID == 0 {
				f.conn += int64(frame.Increment)
			} else if s := f.stream(frame.StreamID); s != nil {
				s.window += int64(frame.Increment)
			}
		case *http2.RSTStreamFrame, *http2.HeadersFrame:
			if s := f.stream(frame.Header().StreamID); s != nil {
				s.over = true
			}
		}
		f.gone = f.gone || err != nil
		f.changed.Broadcast()
		f.mu.Unlock()
		if err != nil {
			settled()
			return
		}
	}
}

func (f *flood) stream(id uint32) *floodStream {
	if i := int(id-1) / 2; i < len(f.streams) {
		return f.streams[i]
	}
	return nil
}

// send sends until all is sent, the connection is closed, or the server has ended all streams and
// takes nothing more. It returns how much it sent.
func (f *flood) send() (sent int64) {
	chunk := make([]byte, 16<<10)
	for {
		f.mu.Lock()
		var next *floodStream
		for {
			done := true
			for _, s := range f.streams {
				if s.unsent > 0 && s.window > 0 && f.conn > 0 && (next == nil || s.unsent > next.unsent) {
					next = s
				}
				done = done && (s.over || s.unsent == 0)
			}
			if next != nil || done || f.gone {
				break
			}
			f.changed.Wait()
		}
		if next == nil || f.gone {
			f.mu.Unlock()
			return sent
		}
		n := min(int64(len(chunk)), next.unsent, next.window, f.conn)
		data := chunk[:n]
		if !next.begun { // not compressed, and the length of the message
			next.begun = true
			data = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(next.unsent-5)), chunk[5:n]...)
		}
		next.unsent, next.window, f.conn = next.unsent-n, next.window-n, f.conn-n
		f.mu.Unlock()
		if f.framer.WriteData(next.id, next.unsent == 0, data) != nil {
			return sent
		}
		sent += n
	}
}

// A client without a token sends large bodies of calls with one request each. The hub reads no
// message of them.
func TestBodiesWithoutATokenCostNoMemory(t *testing.T) {
	const calls, size = 16, 8 << 20
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "alice") })
	for _, method := range []string{wire.ClientService_SendMessage_FullMethodName, wire.PackService_ToolResult_FullMethodName, wire.PackService_Register_FullMethodName} {
		t.Run(method, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			f := newFlood(t, h.service.Addresses().GRPC, method, calls, size)
			sent := f.send()
			runtime.ReadMemStats(&after)
			allocated := after.TotalAlloc - before.TotalAlloc
			t.Logf("%d bytes sent of %d, %d allocated", sent, calls*size, allocated)
			if allocated > size {
				t.Errorf("got %d bytes allocated for %d calls of %d bytes without a token, want less than one of them", allocated, calls, size)
			}
		})
	}
}

// Connections that say nothing fill the limit of a listener. Who has a token still gets in.
func TestIdleConnectionsLockNobodyOutOfAnyListener(t *testing.T) {
	const limit = 64
	h := newTestHub(t, func(c *config.Config) {
		c.Auth.Tokens = tokensFile(t, "alice")
		c.HTTP.Connections, c.GRPC.Connections = limit, limit
	})
	at := h.service.Addresses()
	for _, addr := range []string{at.HTTP, at.GRPC, at.Pi} {
		for range limit {
			bareConn(t, addr)
		}
	}
	if status, body := getAs(t, h.url()+"/v1/agents", "alice"); status != http.StatusOK {
		t.Errorf("HTTP: got %d and %s, want 200", status, body)
	}
	cc, err := grpcserver.Dial(t.Context(), at.GRPC, grpcserver.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	if _, err := wire.NewClientServiceClient(cc).GetMe(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer alice"), nil); err != nil {
		t.Errorf("gRPC: got %v, want an answer", err)
	}
	h.askWith(t, "alice")
	conn := dialFrames(t, at.Pi, "/", 1<<20)
	conn.cut()
}

// A connection that has not authenticated ends after ten seconds.
func TestAConnectionWithoutATokenHasTenSeconds(t *testing.T) {
	tier.Full(t, "it waits until a connection has had its ten seconds")
	t.Parallel()
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "alice") })
	at := h.service.Addresses()
	for name, addr := range map[string]string{"HTTP": at.HTTP, "gRPC": at.GRPC, "pi": at.Pi} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			conn := bareConn(t, addr)
			conn.SetDeadline(begun.Add(watchdog))
			_, err := io.Copy(io.Discard, conn)
			if took := time.Since(begun); errors.Is(err, os.ErrDeadlineExceeded) || took < 9*time.Second {
				t.Errorf("got it ended after %v (%v), want about 10 s", took, err)
			}
		})
	}
}

// lockedBuffer is a log that several goroutines write.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer].
func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// spellings are paths that hold the token of an agent at /mcp/TOKEN: those that a client or a proxy
// may write by mistake, and those that somebody writes to have it logged.
func spellings(token string) []string {
	letters := ""
	for _, c := range []byte(token) {
		letters += fmt.Sprintf("%%%02x", c)
	}
	return []string{
		"/mcp/" + token, "//mcp/" + token, "///mcp///" + token, "/mcp//" + token, "/./mcp/" + token, "/mcp/./" + token, "/x/../mcp/" + token, "/mcp/x/../" + token,
		"/%6dcp/" + token, "/%6Dcp/" + token, "/mcp%2f" + token, "/mcp%2F" + token, "/mcp/" + letters, "/%256dcp%252f" + token, "/MCP/" + token, "/Mcp/" + token, "/mcp;v=1/" + token,
		"/mcp%20/" + token, "/mcp%5c" + token, "/mcp%00/" + token, "/mcp./" + token, "/mcp/" + token + "/", "/mcp/" + token + "/x", "/mcp/?t=" + token, "/mcp?" + token,
		"/mcp%e2%80%8b/" + token, "/v1/mcp/" + token, "/hub/mcp/" + token, "http://localhost/mcp/" + token,
	}
}

// The token of an agent is in no line of the log, at any level, and not in the audit, in whatever
// spelling of the path and for whatever reason the request is refused.
func TestNoSpellingOfAnAgentsTokenIsLogged(t *testing.T) {
	log := &lockedBuffer{}
	c := config.Local()
	c.Auth.Tokens = tokensFile(t, "ann", "root")
	hub, err := service.Start(t.Context(), c, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})), nil)
	if err != nil {
		t.Fatal(err)
	}
	cc, err := grpcserver.Dial(t.Context(), hub.Addresses().GRPC, grpcserver.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := wire.NewCovenControlClient(cc).AgentStream(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer ann"))
	if err != nil {
		t.Fatal(err)
	}
	first, err := registerCoven(t, stream, "ann")
	token := first.GetWelcome().GetMcpToken()
	if err != nil || token == "" {
		t.Fatalf("got %v and %v, want a token", first, err)
	}
	for _, addr := range []string{hub.Addresses().HTTP, hub.Addresses().Pi} {
		for _, path := range spellings(token) {
			for _, head := range []string{"Host: localhost\r\n", "Host: evil.example\r\n", "Host: localhost\r\nOrigin: https://evil.example\r\n", "Host: localhost\r\nAuthorization: Bearer wrong\r\n", "Host: localhost\r\nAuthorization: Bearer ann\r\n"} {
				for _, method := range []string{"GET", "POST"} {
					conn := bareConn(t, addr)
					fmt.Fprintf(conn, "%s %s HTTP/1.1\r\n%sContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}", method, path, head)
					conn.(*net.TCPConn).CloseWrite()
					if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
						resp.Body.Close() // an event stream of the endpoint itself does not end
					}
					conn.Close()
				}
			}
		}
	}
	_, audit := getAs(t, "http://"+hub.Addresses().HTTP+"/v1/audit?limit=1000", "root")
	cc.Close()
	if err := hub.Stop(context.WithoutCancel(t.Context()), "the test is over"); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "/mcp/…") || !strings.Contains(audit, `"connect"`) {
		t.Error("got no line of the requests, want some")
	}
	for what, text := range map[string]string{"the log": log.String(), "the audit": audit} {
		for line := range strings.Lines(text) {
			if strings.Contains(line, token) {
				t.Errorf("%s: got the token in %s, want it masked", what, strings.ReplaceAll(strings.TrimSpace(line), token, "TOKEN"))
			}
		}
	}
}
