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
)

// lossy is a server that never hears of the first request for messages.
type lossy struct {
	*server.Server
	lost atomic.Bool
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
	const next = "$JS.API.CONSUMER.MSG.NEXT"
	if bytes.Contains(b, []byte(next)) && c.server.lost.CompareAndSwap(false, true) {
		b = bytes.Replace(b, []byte(next), []byte("$JX.API.CONSUMER.MSG.NEXT"), 1)
	}
	return c.Conn.Write(b)
}

func TestAReplayAsksAnewWhenItsQuestionWasLost(t *testing.T) {
	j, err := Open(t.Context(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	deaf := &lossy{Server: j.server}
	conn, err := nats.Connect("", nats.InProcessServer(deaf))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	if _, err := j.conn.SubscribeSync("$JX.>"); err != nil { // else it would be told that nobody is there
		t.Fatal(err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	u := j.Usage()
	if _, err := u.js.Publish(t.Context(), u.subject, []byte("x")); err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), u.stream.CachedInfo().Config.Name)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	read := 0
	err = replay(ctx, stream, "the usage", func(jetstream.Msg, *jetstream.MsgMetadata) (bool, error) { read++; return true, nil })
	if err != nil || read != 1 || !deaf.lost.Load() {
		t.Errorf("got %d messages and %v, want 1", read, err)
	}
}
