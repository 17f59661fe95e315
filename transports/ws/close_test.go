package ws_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

func closeBoth(a, b *ws.Conn) {
	var wg sync.WaitGroup
	wg.Go(func() { _ = a.Close(link.Reason{Cause: link.PeerGone}) })
	wg.Go(func() { _ = b.Close(link.Reason{Cause: link.PeerGone}) })
	wg.Wait()
}

func TestEveryReasonIsSentWithItsCloseCode(t *testing.T) {
	long := strings.Repeat("é", 100)
	for _, tt := range []struct {
		reason link.Reason
		code   uint16
		text   string
	}{
		{link.Reason{Cause: link.Normal}, 1000, ""},
		{link.Reason{Cause: link.ShuttingDown, Text: "Server shutting down"}, 1001, "Server shutting down"},
		{link.Reason{Cause: link.Protocol}, 1002, ""},
		{link.Reason{Cause: link.TooLarge}, 1009, ""},
		{link.Reason{Cause: link.Unauthorized, Text: "Invalid token"}, 1008, "Invalid token"},
		{link.Reason{Cause: link.Replaced}, 4409, ""},
		{link.Reason{Cause: link.Slow, Text: "too slow"}, 1013, "too slow"},
		{link.Reason{Cause: link.Unresponsive}, 1001, ""},
		{link.Reason{Cause: link.Overloaded}, 1013, ""},
		{link.Reason{Cause: link.Internal}, 1011, ""},
		{link.Reason{Cause: link.Protocol, Code: 4404}, 4404, ""},
		{link.Reason{Cause: link.Protocol, Code: 1006}, 1002, ""}, // which must not be in a frame
		{link.Reason{Cause: link.Normal, Text: long}, 1000, long[:122]},
	} {
		t.Run(tt.reason.Error(), func(t *testing.T) {
			server, peer := rawPair(t, ws.AcceptOptions{})
			var wg sync.WaitGroup
			wg.Go(func() { _ = server.Close(tt.reason) })
			op, payload := peer.next()
			if op != closed || len(payload) < 2 {
				t.Fatalf("frame: got %x %q, want a close", op, payload)
			}
			if code, text := binary.BigEndian.Uint16([]byte(payload)), payload[2:]; code != tt.code || text != tt.text {
				t.Errorf("close: got %d %q, want %d %q", code, text, tt.code, tt.text)
			}
			peer.send(frame(closed, payload))
			wg.Wait()
		})
	}
}

func TestTheCloseFrameOfThePeerIsTheReason(t *testing.T) {
	for _, tt := range []struct {
		code  uint16
		cause link.Cause // unset for a proper end
	}{
		{1000, 0}, {1001, 0},
		{1002, link.Protocol}, {1003, link.Protocol}, {1007, link.Protocol}, {1008, link.Unauthorized},
		{1009, link.TooLarge}, {1011, link.PeerGone}, {1013, link.Overloaded}, {4409, link.Replaced}, {4404, link.PeerGone},
	} {
		server, peer := rawPair(t, ws.AcceptOptions{})
		peer.send(closeWith(tt.code, "because"))
		_, err := receive(server)
		r := reasonOf(err)
		switch {
		case tt.cause == 0 && !errors.Is(err, io.EOF):
			t.Errorf("close %d: got %v, want EOF", tt.code, err)
		case tt.cause != 0 && (r.Cause != tt.cause || r.Code != int(tt.code) || r.Text != "because"):
			t.Errorf("close %d: got %+v, want %v because", tt.code, r, tt.cause)
		}
		if op, _ := peer.next(); op != closed {
			t.Errorf("answer to close %d: got frame %x, want a close", tt.code, op)
		}
		if _, again := receive(server); again != err {
			t.Errorf("Receive after the end: got %v, want %v again", again, err)
		}
		if sent := server.Send(t.Context(), []byte("late")); sent != err {
			t.Errorf("Send after the end: got %v, want %v", sent, err)
		}
	}
}

// The library would send the close back as it is. What is sent before, a message that looks like such
// a close among other things, stays as it is.
func TestACloseWhoseReasonIsNotUTF8IsAnsweredWith1007(t *testing.T) {
	server, peer := rawPair(t, ws.AcceptOptions{})
	like := strings.Repeat("x", 4<<10) + "\x88\x03\x03\xe8\xff"
	for _, m := range []string{"\x88\x03\x03\xe8\xff", like, strings.Repeat(like, 20)} {
		sent := make(chan error, 1)
		go func() { sent <- server.Send(t.Context(), []byte(m)) }()
		if op, got := peer.next(); op != text || got != m {
			t.Errorf("got frame %x of %d bytes, want the message of %d", op, len(got), len(m))
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	peer.send(closeWith(1000, "a\xff"))
	_, err := receive(server)
	if r := reasonOf(err); r.Cause != link.Protocol || r.Code != 1007 {
		t.Errorf("Receive: got %v, want a breach of the protocol, 1007", err)
	}
	if op, got := peer.next(); op != closed || got != "\x03\xef" {
		t.Errorf("got frame %x %q, want a close with 1007 alone", op, got)
	}
}

func TestACloseWithoutACodeIsAProperEnd(t *testing.T) {
	server, peer := rawPair(t, ws.AcceptOptions{})
	peer.send(frame(closed, ""))
	if _, err := receive(server); !errors.Is(err, io.EOF) {
		t.Errorf("Receive: got %v, want EOF", err)
	}
}

// A lost connection must neither complete a message nor look like a proper end.
func TestATruncatedStreamDoesNotLookComplete(t *testing.T) {
	message := strings.Repeat("x", 5000)
	whole := frame(text, message)
	split := append(frame(part, message[:4096]), frame(rest, message[4096:])...)
	// The library could fail at the ends of its buffers of 4096 bytes.
	for _, stream := range [][]byte{whole, split} {
		for _, at := range []int{0, 1, 4, 8, 100, 4095, 4096, 4103, 4104, 4105, 4108, len(stream) - 1} {
			server, peer := rawPair(t, ws.AcceptOptions{})
			got := make(chan error, 1)
			go func() { m, err := receive(server); got <- orMessage(m, err) }()
			peer.send(stream[:at])
			_ = peer.Close()
			if err := <-got; reasonOf(err).Cause != link.PeerGone || errors.Is(err, io.EOF) {
				t.Errorf("cut after %d bytes of %d: got %v, want peer gone", at, len(stream), err)
			}
		}
	}
}

type message string

func (m message) Error() string { return "a message of " + string(m)[:min(10, len(m))] }

func orMessage(m string, err error) error {
	if err == nil {
		return message(m)
	}
	return err
}

func TestCloseDoesNotWaitLongForAPeerThatDoesNotAnswer(t *testing.T) {
	for _, reads := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			server, peer := pipedPair(t)
			if reads {
				go func() { _, _ = io.Copy(io.Discard, peer) }()
			}
			ended := make(chan error)
			go func() { _, err := receive(server); ended <- err }()
			began := time.Now()
			_ = server.Close(link.Reason{Cause: link.Normal})
			if got := time.Since(began); got > time.Second {
				t.Errorf("Close, and the peer reads %t: took %v, want a second", reads, got)
			}
			if err := <-ended; !errors.Is(err, net.ErrClosed) {
				t.Errorf("Receive: got %v, want net.ErrClosed", err)
			}
			if _, err := receive(server); !errors.Is(err, net.ErrClosed) {
				t.Errorf("a later Receive: got %v, want net.ErrClosed", err)
			}
		})
	}
}

func TestCloseUnblocksSend(t *testing.T) {
	for _, cause := range []link.Cause{link.Slow, link.PeerGone} {
		synctest.Test(t, func(t *testing.T) {
			server, _ := pipedPair(t)
			ended := make(chan error)
			go func() { ended <- server.Send(context.Background(), make([]byte, 1<<20)) }()
			synctest.Wait() // it is blocked
			began := time.Now()
			_ = server.Close(link.Reason{Cause: cause})
			if err := <-ended; err == nil {
				t.Error("the blocked Send: got nil, want an error")
			}
			if got := time.Since(began); got > time.Second {
				t.Errorf("Close as %v: took %v, want a second", cause, got)
			}
		})
	}
}

func TestAnInvalidFrameEndsTheConnectionAsProtocol(t *testing.T) {
	for name, f := range map[string][]byte{
		"reserved bits":        frame(text|0x40, "x"),
		"an unknown opcode":    frame(0x83, "x"),
		"a fragmented ping":    frame(ping&^0x80, "x"),
		"a stray continuation": frame(rest, "x"),
		"an unmasked frame":    {text, 1, 'x'},
		"a close of one byte":  frame(closed, "x"),
	} {
		t.Run(name, func(t *testing.T) {
			server, peer := rawPair(t, ws.AcceptOptions{})
			peer.send(f)
			_, err := receive(server)
			r := reasonOf(err)
			if r.Cause != link.Protocol {
				t.Errorf("Receive: got %v, want protocol", err)
			}
			var wg sync.WaitGroup
			wg.Go(func() { _ = server.Close(r) })
			if op, payload := peer.next(); op != closed || binary.BigEndian.Uint16([]byte(payload)) != 1002 {
				t.Errorf("sent to the peer: got %x %q, want close 1002", op, payload)
			}
			_ = peer.Conn.Close()
			wg.Wait()
		})
	}
}

func TestTheDialContextBoundsOnlyTheHandshake(t *testing.T) {
	url, conns := listen(t, ws.AcceptOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	client, err := ws.Dial(ctx, url, ws.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	server := <-conns
	defer closeBoth(server, client)
	cancel()
	if err := client.Send(t.Context(), []byte("hello")); err != nil {
		t.Errorf("Send after the context of Dial ended: got %v, want nil", err)
	}
	if got, err := receive(server); got != "hello" {
		t.Errorf("received: got %q %v, want hello", got, err)
	}
}
