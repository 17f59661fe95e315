package ws

import (
	"context"
	"errors"
	"io"
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

func write(t *testing.T, w *wire, ps ...string) {
	t.Helper()
	for _, p := range ps {
		if n, err := w.Write([]byte(p)); n != len(p) || err != nil {
			t.Errorf("Write of %d bytes: got %d %v", len(p), n, err)
		}
	}
}

func TestFramesWrittenWhileCorkedAreWrittenTogether(t *testing.T) {
	s := &socket{}
	w := newWire(s, false)
	write(t, w, "a", "b")
	w.cork()
	write(t, w, "c", "d", "e")
	if err := w.uncork(); err != nil {
		t.Fatal(err)
	}
	write(t, w, "f")
	if got, want := strings.Join(s.writes, " "), "a b cde f"; got != want {
		t.Errorf("writes: got %q, want %q", got, want)
	}
}

func TestOnlyACloseWhoseReasonIsNotUTF8IsReplaced(t *testing.T) {
	long := "\x81\x7e\x01\x00" + strings.Repeat("x", 200)
	huge := "\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00" + strings.Repeat("x", 60000)
	for _, tt := range []struct{ writes, want []string }{
		{[]string{"\x88\x00"}, []string{"\x88\x00"}},
		{[]string{"\x88\x02\x03\xe8"}, []string{"\x88\x02\x03\xe8"}},
		{[]string{"\x88\x04\x03\xe8ü"}, []string{"\x88\x04\x03\xe8ü"}},
		{[]string{"\x88\x03\x03\xe8\xff"}, []string{"\x88\x02\x03\xef"}},
		{[]string{"\x88\x83\x01\x02\x03\x04\x02\xea\xfc"}, []string{"\x88\x82\x00\x00\x00\x00\x03\xef"}}, // 0xff, masked
		{[]string{"\x88\x83\x01\x02\x03\x04\x02\xea\x62"}, []string{"\x88\x83\x01\x02\x03\x04\x02\xea\x62"}},
		{[]string{"\x8a\x03\x03\xe8\xff"}, []string{"\x8a\x03\x03\xe8\xff"}}, // a pong
		{[]string{long, "\x88\x03\x03\xe8\xff", strings.Repeat("x", 51), "\x88\x03\x03\xe8\xff"}, []string{long, "\x88\x03\x03\xe8\xff", strings.Repeat("x", 51), "\x88\x02\x03\xef"}},
		{[]string{huge, "\x88\x03\x03\xe8\xff"}, []string{huge, "\x88\x03\x03\xe8\xff"}}, // not the end of the message
	} {
		s := &socket{}
		write(t, newWire(s, false), tt.writes...)
		if !slices.Equal(s.writes, tt.want) {
			t.Errorf("%.40q: got %.60q, want %.60q", tt.writes, s.writes, tt.want)
		}
	}
}

func TestWhatWasWrittenIsCountedDuringAWrite(t *testing.T) {
	s := &socket{}
	w := newWire(s, false)
	var during int64
	s.during = func() { s.during = func() { during = w.written.Load() } }
	write(t, w, strings.Repeat("L", 3*corkBytes))
	if during != corkBytes || w.written.Load() != 3*corkBytes {
		t.Errorf("got %d bytes during the second piece and %d in the end, want %d and %d", during, w.written.Load(), corkBytes, 3*corkBytes)
	}
}

func TestCorkedFramesAreBoundedAndKeepTheirOrder(t *testing.T) {
	s := &socket{}
	w := newWire(s, false)
	large, small := strings.Repeat("L", corkBytes), strings.Repeat("s", 1000)
	w.cork()
	write(t, w, "1", large, "2")
	for range 100 {
		write(t, w, small)
	}
	if err := w.uncork(); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(s.writes, ""), "1"+large+"2"+strings.Repeat(small, 100); got != want {
		t.Errorf("written: got %d bytes, want %d in order", len(got), len(want))
	}
	if len(s.writes) != 4 {
		t.Errorf("writes: got %d, want 4: what came before the large one, the large one, and twice 64 KiB", len(s.writes))
	}
	for _, p := range s.writes {
		if len(p) > corkBytes {
			t.Errorf("one write: got %d bytes, want at most %d", len(p), corkBytes)
		}
	}
}

func TestAPingDuringAWriteIsAnsweredAfterIt(t *testing.T) {
	for _, tt := range []struct {
		client bool
		pong   string
	}{{false, "\x8a\x02hi"}, {true, "\x8a\x82\x00\x00\x00\x00hi"}} {
		s := &socket{}
		w := newWire(s, tt.client)
		if !w.pinged(context.Background(), []byte("idle")) {
			t.Error("a ping without a write: got it held, want it left to the library")
		}
		w.cork()
		write(t, w, "frame")
		s.during = func() {
			for _, p := range []string{"old", "hi"} {
				if w.pinged(context.Background(), []byte(p)) {
					t.Error("a ping during a write: got it left to the library, want it held")
				}
			}
		}
		if err := w.uncork(); err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Join(s.writes, "|"), "frame|"+tt.pong; got != want {
			t.Errorf("writes: got %q, want the frame and the pong to the last ping %q", got, want)
		}
		if !w.pinged(context.Background(), nil) {
			t.Error("a ping after the write: got it held, want it left to the library")
		}
	}
}

func TestAFailedWriteIsReportedAndLeavesNoPong(t *testing.T) {
	broken := errors.New("broken")
	s := &socket{err: broken}
	w := newWire(s, false)
	w.cork()
	write(t, w, "frame")
	s.during = func() { w.pinged(context.Background(), []byte("hi")) }
	if err := w.uncork(); !errors.Is(err, broken) {
		t.Errorf("uncork: got %v, want the error of the write", err)
	}
	if len(s.writes) != 1 || !w.failed.Load() {
		t.Errorf("after it: got writes %q and failed %v, want one write and true", s.writes, w.failed.Load())
	}
}
