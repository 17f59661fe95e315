package ws_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

func TestAnOversizedMessageIsRejectedAndTheConnectionStaysOpen(t *testing.T) {
	const limit, hard = 100_000, 300_000
	for _, how := range []string{"in one frame", "in several"} {
		t.Run(how, func(t *testing.T) {
			server, peer := rawPair(t, ws.AcceptOptions{Limits: ws.Limits{ReadLimit: limit, Oversize: ws.Reject, HardLimit: hard}})
			for _, size := range []int{limit, limit + 1, hard} {
				m := strings.Repeat("x", size)
				frames := [][]byte{frame(text, m)}
				if how == "in several" {
					frames = [][]byte{frame(part, m[:10]), frame(0, m[10:limit-5]), frame(ping, ""), frame(rest, m[limit-5:])}
				}
				go peer.send(append(frames, frame(text, "next"))...)
				got, err := receive(server)
				switch r := rejectOf(err); {
				case size <= limit && got != m:
					t.Errorf("message of %d bytes: got %d bytes and %v, want the message", size, len(got), err)
				case size > limit && (r.Cause != link.TooLarge || r.Size != size || r.Limit != limit):
					t.Errorf("message of %d bytes: got %+v %v, want it rejected as too large, %d over %d", size, r, err, size, limit)
				case size > limit && (len(r.Head) == 0 || !strings.HasPrefix(m, r.Head)):
					t.Errorf("message of %d bytes: got the head %q, want its beginning", size, r.Head)
				}
				if next, err := receive(server); next != "next" {
					t.Errorf("the message after it: got %q %v, want next", next, err)
				}
			}
			go func() { _, _ = peer.Write(frame(text, strings.Repeat("x", hard+1))) }()
			if _, err := receive(server); reasonOf(err).Cause != link.TooLarge {
				t.Errorf("message over the hard limit: got %v, want too large as the end", err)
			}
		})
	}
}

func TestWithoutRejectAnOversizedMessageEndsTheConnection(t *testing.T) {
	server, client := pair(t, ws.AcceptOptions{Limits: ws.Limits{ReadLimit: 10}}, ws.DialOptions{})
	l := link.New(server, link.Options{})
	ended := make(chan link.Reason)
	go func() { ended <- l.Run(t.Context(), nil, nil) }()
	if err := client.Send(t.Context(), []byte("eleven byte")); err != nil {
		t.Fatal(err)
	}
	if _, err := receive(client); reasonOf(err).Code != 1009 {
		t.Errorf("sent to the peer: got %v, want 1009", err)
	}
	if r := <-ended; r.Cause != link.TooLarge {
		t.Errorf("Run: got %v, want too large", &r)
	}
}

func TestABinaryMessageIsRejectedUnlessItIsAccepted(t *testing.T) {
	server, peer := rawPair(t, ws.AcceptOptions{})
	peer.send(frame(binar, strings.Repeat("x", 10_000)), frame(text, "next"))
	_, err := receive(server)
	if r := rejectOf(err); r.Cause != link.Protocol || r.Size != 10_000 || r.Text != "binary message; send text" {
		t.Errorf("binary message: got %v, want it rejected", err)
	}
	if next, err := receive(server); next != "next" {
		t.Errorf("the message after it: got %q %v, want next", next, err)
	}

	server, peer = rawPair(t, ws.AcceptOptions{Limits: ws.Limits{AcceptBinary: true}})
	peer.send(frame(binar, "{}\xff"))
	if got, err := receive(server); got != "{}\xff" {
		t.Errorf("accepted binary message: got %q %v, want it untouched", got, err)
	}
}

func TestTextThatIsNotUTF8EndsTheConnectionWith1007(t *testing.T) {
	server, peer := rawPair(t, ws.AcceptOptions{})
	peer.send(frame(text, "\xff"))
	_, err := receive(server)
	if r := reasonOf(err); r.Cause != link.Protocol || r.Code != 1007 {
		t.Errorf("Receive: got %+v, want protocol with 1007", err)
	}
}

func TestAMessageBelongsToTheReceiver(t *testing.T) {
	server, client := pair(t, ws.AcceptOptions{}, ws.DialOptions{})
	_ = client.SendBatch(t.Context(), [][]byte{[]byte("first"), []byte("other")})
	first, _ := server.Receive(t.Context())
	if _, err := server.Receive(t.Context()); err != nil || string(first) != "first" {
		t.Errorf("the first message after the second: got %q %v, want first", first, err)
	}
}

func TestReceiveAfterCloseIsRefused(t *testing.T) {
	server, client := pair(t, ws.AcceptOptions{}, ws.DialOptions{})
	_ = client.Send(t.Context(), []byte("unread"))
	closeBoth(server, client)
	if _, err := receive(server); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Receive: got %v, want net.ErrClosed", err)
	}
}
