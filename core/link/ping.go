package link

import (
	"context"
	"errors"
)

// errNoPing is returned for a transport that cannot ping.
var errNoPing = errors.New("the transport has no ping")

// Ping pings the peer and returns nil when it has answered or, on a link with keepalive,
// sent any message. It returns an error if ctx ends first, the connection has ended or the
// Conn is not a [Pinger]. While the reader loop is busy with a message, the peer counts as
// alive.
func (l *Link[In, Out]) Ping(ctx context.Context) error {
	p, ok := l.conn.(Pinger)
	if !ok {
		return errNoPing
	}
	last := l.lastReceive.Load()
	err := p.Ping(ctx)
	if err == nil || ctx.Err() == nil || l.pinger == nil {
		return err
	}
	if now := l.lastReceive.Load(); now == busy || now != last {
		return nil
	}
	return err
}
