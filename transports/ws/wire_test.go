package ws

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
)

// socket records each write.
type socket struct {
	writes []string
	during func() // called during the first write
	err    error
}

func (s *socket) Read([]byte) (int, error) { return 0, io.EOF }

func (s *socket) Write(p []byte) (int, error) {
	s.writes = append(s.writes, string(p))
	if s.during != nil {
		f := s.during
		s.during = nil
		f()
	}
	return len(p), s.err
}

func (s *socket) Close() error { return nil }

// control writes a frame as the library does.
func control(t *testing.T, w *wire, frame string) {
	t.Helper()
	if n, err := w.Write([]byte(frame)); n != len(frame) || err != nil {
		t.Errorf("Write of %q: got %d %v", frame, n, err)
	}
}

// send sends messages.
func send(t *testing.T, w *wire, messages ...string) {
	t.Helper()
	var ms [][]byte
	for _, m := range messages {
		ms = append(ms, []byte(m))
	}
	if err := w.send(ms); err != nil {
		t.Errorf("send: got %v, want nil", err)
	}
}

func TestMessagesAreWrittenTogether(t *testing.T) {
	s := &socket{}
	w := newWire(s, false)
	send(t, w, "a")
	send(t, w, "b", strings.Repeat("c", 126), "")
	if want := []string{"\x81\x01a", "\x81\x01b\x81\x7e\x00\x7e" + strings.Repeat("c", 126) + "\x81\x00"}; !slices.Equal(s.writes, want) {
		t.Errorf("writes: got %q, want %q", s.writes, want)
	}
}

func TestAMessageOfAClientIsMasked(t *testing.T) {
	s := &socket{}
	m := strings.Repeat("0123456789", 10_000)
	send(t, newWire(s, true), m)
	got := []byte(strings.Join(s.writes, ""))
	if header := string(got[:2]); header != "\x81\xff" || binary.BigEndian.Uint64(got[2:]) != uint64(len(m)) {
		t.Fatalf("header: got %x, want that of %d masked bytes", got[:10], len(m))
	}
	key, payload := [4]byte(got[10:14]), got[14:]
	if key == [4]byte{} || string(payload) == m {
		t.Errorf("key: got %x, want one that masks", key)
	}
	if xor(payload, key, 0); string(payload) != m {
		t.Errorf("unmasked: got %d other bytes, want the %d of the message", len(payload), len(m))
	}
}

func TestMessagesAreWrittenInPiecesAndKeepTheirOrder(t *testing.T) {
	s := &socket{}
	w := newWire(s, false)
	large, small := strings.Repeat("L", 3*writeBytes), strings.Repeat("s", 1000)
	ms, want := []string{"1", large, "2"}, "\x81\x011\x81\x7f\x00\x00\x00\x00\x00\x03\x00\x00"+large+"\x81\x012"
	for range 100 {
		ms = append(ms, small)
		want += "\x81\x7e\x03\xe8" + small
	}
	var counted int64
	s.during = func() { s.during = func() { counted = w.written.Load() } }
	send(t, w, ms...)
	if got := strings.Join(s.writes, ""); got != want {
		t.Errorf("written: got %d bytes, want %d in order", len(got), len(want))
	}
	for _, p := range s.writes {
		if len(p) > writeBytes {
			t.Errorf("one write: got %d bytes, want at most %d", len(p), writeBytes)
		}
	}
	if first := int64(len(s.writes[0])); counted != first || w.written.Load() != int64(len(want)) {
		t.Errorf("got %d bytes during the second write and %d in the end, want %d and %d", counted, w.written.Load(), first, len(want))
	}
	if n := len(s.writes); n != 6 {
		t.Errorf("writes: got %d, want 6: what comes before the large one, that in 3 and a bit with what follows, and the rest", n)
	}
}

func TestOnlyACloseWhoseReasonIsNotUTF8IsReplaced(t *testing.T) {
	for _, tt := range []struct{ frame, want string }{
		{"\x88\x00", ""},
		{"\x88\x02\x03\xe8", ""},
		{"\x88\x04\x03\xe8ü", ""},
		{"\x88\x03\x03\xe8\xff", "\x88\x02\x03\xef"},
		{"\x88\x83\x01\x02\x03\x04\x02\xea\x62", ""},
		{"\x8a\x03\x03\xe8\xff", ""}, // a pong
	} {
		s := &socket{}
		control(t, newWire(s, false), tt.frame)
		if got, want := s.writes[0], cmp.Or(tt.want, tt.frame); got != want {
			t.Errorf("%q: got %q, want %q", tt.frame, got, want)
		}
	}
	s := &socket{}
	control(t, newWire(s, true), "\x88\x83\x01\x02\x03\x04\x02\xea\xfc") // 0xff, masked
	got := []byte(s.writes[0])
	if len(got) != 8 || string(got[:2]) != "\x88\x82" {
		t.Fatalf("a masked one: got %x, want a masked close of two bytes", got)
	}
	if xor(got[6:], [4]byte(got[2:6]), 0); string(got[6:]) != "\x03\xef" {
		t.Errorf("a masked one: got the code %x, want 1007", got[6:])
	}
}

func TestControlFramesDuringAWriteFollowIt(t *testing.T) {
	const ping, old, pong = "\x89\x01p", "\x8a\x03old", "\x8a\x02hi"
	s := &socket{}
	w := newWire(s, false)
	control(t, w, ping)
	s.writes = nil
	s.during = func() {
		for _, frame := range []string{old, ping, pong} {
			control(t, w, frame)
		}
		if len(s.writes) != 1 {
			t.Errorf("during the write: got %q written, want the message alone", s.writes)
		}
		s.during = func() { control(t, w, old) } // while those are written
	}
	send(t, w, "m")
	if want := []string{"\x81\x01m", ping + pong, old}; !slices.Equal(s.writes, want) {
		t.Errorf("writes: got %q, want %q: of the pongs the last", s.writes, want)
	}
	if len(w.writing) > 0 {
		t.Error("after it: got a write that has not ended")
	}
}

func TestNothingFollowsAClose(t *testing.T) {
	s := &socket{}
	w := newWire(s, false)
	s.during = func() { control(t, w, "\x8a\x00") }
	control(t, w, "\x88\x02\x03\xe8")
	if err := w.send([][]byte{[]byte("late")}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("send: got %v, want net.ErrClosed", err)
	}
	if len(s.writes) != 1 {
		t.Errorf("got %q, want the close alone", s.writes)
	}
}

func TestAFailedWriteIsReported(t *testing.T) {
	broken := errors.New("broken")
	w := newWire(&socket{err: broken}, false)
	if err := w.send([][]byte{[]byte("m")}); !errors.Is(err, broken) || !w.failed.Load() {
		t.Errorf("send: got %v and failed %v, want the error of the write and true", err, w.failed.Load())
	}
}
