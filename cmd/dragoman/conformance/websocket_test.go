package conformance

import (
	"bufio"
	"crypto/sha1" //nolint:gosec // RFC 6455 wants it
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// watchdog is how long a test waits for what should happen at once.
const watchdog = time.Minute

// mask is the key of every frame that has one.
var mask = [4]byte{0xA5, 0x00, 0x3C, 0xFF}

// The opcodes of RFC 6455, and the bit that ends a message.
const (
	fin    = 0x80
	text   = 0x1
	bytes  = 0x2
	closed = 0x8
	ping   = 0x9
	pong   = 0xA
)

// frame returns a frame of a client. first has the opcode, fin and reserved bits.
func frame(first byte, payload string) string {
	return header(first, len(payload)) + masked(payload)
}

// header returns the beginning of a frame whose length is encoded as briefly as it can be, with the
// mask.
func header(first byte, length int) string {
	b := []byte{first}
	switch {
	case length < 126:
		b = append(b, 0x80|byte(length))
	case length < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(length))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(length))
	}
	return string(append(b, mask[:]...))
}

func masked(payload string) string {
	b := []byte(payload)
	for i := range b {
		b[i] ^= mask[i%4]
	}
	return string(b)
}

// closing returns a close frame.
func closing(code uint16, why string) string {
	return frame(fin|closed, string(binary.BigEndian.AppendUint16(nil, code))+why)
}

// asking returns a frame of the native dialect that the hub answers, naming the id.
func asking(id string) string { return fmt.Sprintf(`{"tools":{"id":%q}}`, id) }

// socket is a WebSocket of which the test writes every byte.
type socket struct {
	*testing.T
	net.Conn
	in *bufio.Reader
}

// openSocket connects to the native dialect of a hub, and reads its hello.
func openSocket(t *testing.T, h hub) *socket {
	t.Helper()
	s, resp := shakeHands(t, h, "GET /ws/native HTTP/1.1", "Host: "+h.http, "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: "+socketKey)
	sum := sha1.Sum([]byte(socketKey + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // RFC 6455 wants it
	if got, want := resp.Header.Get("Sec-WebSocket-Accept"), base64.StdEncoding.EncodeToString(sum[:]); resp.StatusCode != http.StatusSwitchingProtocols || got != want {
		t.Fatalf("got %s and Sec-WebSocket-Accept %q, want 101 and %q", resp.Status, got, want)
	}
	if got := s.next(); got != "hello" {
		t.Fatalf("got %s, want hello", got)
	}
	return s
}

// socketKey is the example of RFC 6455.
const socketKey = "dGhlIHNhbXBsZSBub25jZQ=="

// shakeHands sends a request and reads the response.
func shakeHands(t *testing.T, h hub, lines ...string) (*socket, *http.Response) {
	t.Helper()
	c, err := net.Dial("tcp", h.http)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(watchdog)); err != nil {
		t.Fatal(err)
	}
	s := &socket{t, c, bufio.NewReader(c)}
	s.write(strings.Join(lines, "\r\n") + "\r\n\r\n")
	resp, err := http.ReadResponse(s.in, nil)
	if err != nil {
		t.Fatalf("handshake: got %v, want a response", err)
	}
	_ = resp.Body.Close()
	return s, resp
}

// write writes bytes. The hub may close while it does.
func (s *socket) write(b string) {
	_, _ = io.WriteString(s.Conn, b)
}

// next returns in a word what the hub sends next.
func (s *socket) next() string {
	var h [2]byte
	if _, err := io.ReadFull(s.in, h[:]); err != nil {
		var late net.Error
		if errors.As(err, &late) && late.Timeout() {
			return "nothing"
		}
		return "end" // closed or reset
	}
	length := uint64(h[1])
	switch length {
	case 126:
		var b [2]byte
		_, _ = io.ReadFull(s.in, b[:])
		length = uint64(binary.BigEndian.Uint16(b[:]))
	case 127:
		var b [8]byte
		_, _ = io.ReadFull(s.in, b[:])
		length = binary.BigEndian.Uint64(b[:])
	}
	if h[1]&0x80 != 0 || length > 1<<20 {
		return fmt.Sprintf("a frame %x that no server may send", h)
	}
	payload := make([]byte, length)
	if _, err := io.ReadFull(s.in, payload); err != nil {
		return "a part of a frame"
	}
	switch h[0] {
	case fin | text:
		return said(payload)
	case fin | pong:
		return "pong " + brief(string(payload))
	case fin | closed:
		if length == 0 {
			return "close"
		}
		if length == 1 {
			return "a close of one byte"
		}
		return fmt.Sprintf("close %d", binary.BigEndian.Uint16(payload))
	}
	return fmt.Sprintf("frame %x", h[0])
}

// brief shortens what is long.
func brief(payload string) string {
	if len(payload) > 20 {
		return fmt.Sprintf("%d bytes", len(payload))
	}
	return payload
}

// said returns in a word what a frame of the native dialect says.
func said(payload []byte) string {
	var f struct {
		Hello  json.RawMessage
		Result *struct{ ID string }
		Error  *struct{ Fault struct{ Code string } }
	}
	switch err := json.Unmarshal(payload, &f); {
	case err != nil:
		return "a frame that is not JSON"
	case f.Hello != nil:
		return "hello"
	case f.Result != nil:
		return "answer " + brief(f.Result.ID)
	case f.Error != nil:
		return "error " + f.Error.Fault.Code
	}
	return "another frame"
}

func TestWebSocketFrames(t *testing.T) {
	t.Parallel()
	h := startHub(t)
	results := map[string]result{}
	for _, c := range socketCases {
		if _, twice := results[c.name]; twice {
			t.Errorf("%s: two cases have this name", c.name)
		}
		got := c.run(openSocket(t, h))
		results[c.name] = result{passed: got == c.want, why: fmt.Sprintf("got %q, want %q", got, c.want)}
	}
	judge(t, "WebSocket", results)
}

// run plays a case, and returns what the hub sent. Where it did not close, it still has to answer.
func (c socketCase) run(s *socket) string {
	defer s.Conn.Close()
	if c.slowly {
		for i := range len(c.sent) {
			s.write(c.sent[i : i+1])
		}
	} else {
		s.write(c.sent)
	}
	closes := strings.Contains(c.want, "close") || strings.Contains(c.want, "end")
	if !closes {
		s.write(frame(fin|text, asking("at last")))
	}
	var all []string
	for {
		word := s.next()
		switch {
		case word == c.maybe && word != "":
			continue
		case len(all) > 0 && word == all[len(all)-1] && strings.HasPrefix(word, "pong"):
			continue // one may answer all pings that have come meanwhile: RFC 6455, section 5.5.3
		case word == "answer at last":
			return strings.Join(all, ", ")
		case word == "end" && len(all) > 0 && strings.HasPrefix(all[len(all)-1], "close"):
			return strings.Join(all, ", ")
		}
		if all = append(all, word); word == "end" || word == "nothing" {
			return strings.Join(all, ", ")
		}
		if strings.HasPrefix(word, "close") {
			s.write(frame(fin|closed, "\x03\xe8"))
		}
	}
}

func TestWebSocketHandshake(t *testing.T) {
	t.Parallel()
	h := startHub(t)
	get, host := "GET /ws/native HTTP/1.1", "Host: "+h.http
	upgrade, connection, version, key := "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: "+socketKey
	for _, c := range []struct {
		name  string
		lines []string
		want  int
	}{
		{"as it should be", []string{get, host, upgrade, connection, version, key}, 101},
		{"in other cases", []string{get, host, "uPGRADE: WebSocket", "CONNECTION: keep-alive, upgrade", "SEC-WEBSOCKET-VERSION: 13", key}, 101},
		{"extensions are offered", []string{get, host, upgrade, connection, version, key, "Sec-WebSocket-Extensions: permessage-deflate"}, 101},
		{"no upgrade", []string{get, host, connection, version, key}, 426},
		{"upgrade to something else", []string{get, host, "Upgrade: h2c", connection, version, key}, 426},
		{"no connection header", []string{get, host, upgrade, version, key}, 426},
		{"no key", []string{get, host, upgrade, connection, version}, 400},
		{"two keys", []string{get, host, upgrade, connection, version, key, key}, 400},
		{"a key that is not base64", []string{get, host, upgrade, connection, version, "Sec-WebSocket-Key: !!!"}, 400},
		{"a short key", []string{get, host, upgrade, connection, version, "Sec-WebSocket-Key: c2hvcnQ="}, 400},
		{"an old version", []string{get, host, upgrade, connection, "Sec-WebSocket-Version: 8", key}, 400},
		{"no version", []string{get, host, upgrade, connection, key}, 400},
		{"a POST", []string{"POST /ws/native HTTP/1.1", host, upgrade, connection, version, key, "Content-Length: 0"}, 405},
		{"HTTP/1.0", []string{"GET /ws/native HTTP/1.0", host, upgrade, connection, version, key}, 426},
		{"no host", []string{get, upgrade, connection, version, key}, 400},
	} {
		_, resp := shakeHands(t, h, c.lines...)
		if resp.StatusCode != c.want {
			t.Errorf("%s: got %s, want %d", c.name, resp.Status, c.want)
		}
		if extensions := resp.Header.Get("Sec-WebSocket-Extensions"); extensions != "" {
			t.Errorf("%s: got the extensions %q, want none", c.name, extensions)
		}
		if c.name == "an old version" && resp.Header.Get("Sec-WebSocket-Version") != "13" {
			t.Errorf("%s: got Sec-WebSocket-Version %q, want the known one", c.name, resp.Header.Get("Sec-WebSocket-Version"))
		}
	}
}
