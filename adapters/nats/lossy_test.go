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

// lossy is a server that never hears of the first request of a kind.
type lossy struct {
	*server.Server
	request string // how its subject goes on behind $JS.API.
	lost    atomic.Bool
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
	asks := []byte("$JS.API." + c.server.request)
	if bytes.Contains(b, asks) && c.server.lost.CompareAndSwap(false, true) {
		b = bytes.Replace(b, asks, []byte("$JX.API."+c.server.request), 1)
	}
	return c.Conn.Write(b)
}

// deafened opens a journal, and a second connection to its server, on which the first
// request of a kind is lost.
func deafened(t *testing.T, request string) (*Journal, *lossy, *nats.Conn) {
	t.Helper()
	j := opened(t, Options{Dir: t.TempDir()})
	deaf := &lossy{Server: j.server, request: request}
	conn, err := nats.Connect("", nats.InProcessServer(deaf))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
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
