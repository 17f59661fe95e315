package link

import (
	"context"
	"errors"
)

// errNoPing is why a transport cannot be asked whether its peer is there.
var errNoPing = errors.New("the transport has no ping")

// Ping asks the peer for a sign of life and returns nil once there was one: the
// answer or, on a link with keepalive, any message. It returns an error when ctx
// ends first, the connection has ended or the Conn is no [Pinger]. A peer that we
// are not listening to, because the reader loop is busy with what it said last,
// counts as alive.
func (l *Link[In, Out]) Ping(ctx context.Context) error {
	p, ok := l.conn.(Pinger)
	if !ok {
		return errNoPing
	}
	heard := l.heard.Load()
	err := p.Ping(ctx)
	if err == nil || ctx.Err() == nil || l.pinger == nil {
		return err
	}
	if now := l.heard.Load(); now == busy || now != heard {
		return nil
	}
	return err
}
