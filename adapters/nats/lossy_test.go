package nats

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dragoman-hub/dragoman/core"
)

// lossy is a server to which something is said otherwise, once.
type lossy struct {
	*server.Server
	said, instead string // equally long
	lost          atomic.Bool
}

func (l *lossy) InProcessConn() (net.Conn, error) {
	c, err := l.Server.InProcessConn()
	return &lossyConn{c, l}, err
}

type lossyConn struct {
	net.Conn
	server *lossy
}

func (c *lossyConn) Write(b []byte) (int, error) {
	said := []byte(c.server.said)
	if bytes.Contains(b, said) && c.server.lost.CompareAndSwap(false, true) {
		b = bytes.Replace(b, said, []byte(c.server.instead), 1)
	}
	return c.Conn.Write(b)
}

// connect opens a connection to the server.
func (l *lossy) connect(t *testing.T) *nats.Conn {
	t.Helper()
	conn, err := nats.Connect("", nats.InProcessServer(l))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// deafened opens a journal, and a second connection to its server, on which the first
// request of a kind is lost.
func deafened(t *testing.T, request string) (*Journal, *lossy, *nats.Conn) {
	t.Helper()
	j := opened(t, Options{Dir: t.TempDir()})
	deaf := &lossy{Server: j.server, said: "$JS.API." + request, instead: "$JX.API." + request}
	conn := deaf.connect(t)
	if _, err := j.conn.SubscribeSync("$JX.>"); err != nil { // else it would be told that nobody is there
		t.Fatal(err)
	}
	return j, deaf, conn
}

func TestAReadDoesNotWaitForAnAnswerThatIsLost(t *testing.T) {
	j, deaf, conn := deafened(t, "DIRECT.GET")
	task, events := core.TaskID(core.NewID()), life("thread", 3)
	if err := j.Append(t.Context(), recorded(task, events...)...); err != nil {
		t.Fatal(err)
	}
	own := j.conn
	t.Cleanup(func() { j.conn = own })
	j.conn = conn
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	got, err := j.Read(ctx, task, 0, 0)
	if err != nil || len(got) != len(events) || !deaf.lost.Load() {
		t.Errorf("got %d events and %v, want %d", len(got), err, len(events))
	}
}

func TestAReplayAsksAnewWhenItsQuestionWasLost(t *testing.T) {
	j, deaf, conn := deafened(t, "CONSUMER.MSG.NEXT")
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	u := j.Usage()
	if _, err := j.js.Publish(t.Context(), u.subject, []byte("x")); err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), u.stream.CachedInfo().Config.Name)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	read := 0
	err = replayAsked(ctx, stream, 1, 1, "the usage", func(message) (bool, error) { read++; return true, nil })
	if err != nil || read != 1 || !deaf.lost.Load() {
		t.Errorf("got %d messages and %v, want 1", read, err)
	}
}

// The messages of an append are stored, and nobody hears of it. The recorder appends them
// again; what stands in the journal twice is read once.
func TestAnAppendWhoseAcknowledgementIsLostIsRepeated(t *testing.T) {
	j := opened(t, Options{Dir: t.TempDir()})
	first, second := begun(time.Now().Add(-time.Hour)), begun(time.Now())
	records := append(recorded(first, life("", 1)...), recorded(second, life("", 1)...)...) // two messages
	deaf := &lossy{Server: j.server, said: slot(second) + " _INBOX.", instead: slot(second) + " _LOSTX."}
	conn, js := j.conn, j.js
	t.Cleanup(func() { j.conn, j.js = conn, js })
	j.conn = deaf.connect(t)
	var err error
	if j.js, err = jetstream.New(j.conn); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := j.Append(ctx, records...); err == nil || !deaf.lost.Load() {
		t.Fatalf("without an acknowledgement: got %v, want an error", err)
	}
	for _, when := range []string{"again", "after that"} {
		if err := j.Append(t.Context(), records...); err != nil {
			t.Errorf("%s: got %v, want no error", when, err)
		}
	}
	for _, task := range []core.TaskID{first, second} {
		if events, err := j.Read(t.Context(), task, 0, 0); err != nil || len(events) != 3 {
			t.Errorf("got %d events and %v, want 3", len(events), err)
		}
	}
}
