package nats

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/dragoman-hub/dragoman/core/cluster"
)

// Bus is a cluster.Bus on a connection of its own, so that what hubs tell each other does not
// wait behind the journal. It ends with its Journal.
type Bus struct {
	conn   *nats.Conn
	prefix string
}

var _ cluster.Bus = (*Bus)(nil)

// Bus returns the bus of the cluster; nil without Options.Cluster.
func (j *Journal) Bus() *Bus { return j.bus }

// The bounds of a bus.
const (
	// behindBytes and behindMessages are how far a subscriber may be behind before it loses
	// messages.
	behindBytes    = 32 << 20
	behindMessages = 1 << 16
	// busPing is the time between two pings of the server: two lost ones end a connection.
	busPing = 2 * time.Second
	// busPause is the time before each try to connect again.
	busPause = 100 * time.Millisecond
	// busStall is how long a server may take nothing before the connection is given up.
	busStall = 3 * time.Second
	// flushTime is how long to wait until the server knows of a subscription, or of its end.
	flushTime = 500 * time.Millisecond
)

// openBus connects the bus of a cluster. While it is not connected, what is published is lost
// and not kept for later: it would be out of date.
func (j *Journal) openBus(ctx context.Context, url, cluster string) (err error) {
	j.bus = &Bus{prefix: "$DRAGOMAN." + cluster + "."}
	j.bus.conn, err = j.dial(ctx, url,
		nats.Name("dragoman bus"), nats.ReconnectBufSize(-1), nats.ReconnectWait(busPause), nats.ReconnectJitter(busPause, busPause),
		nats.PingInterval(busPing), nats.FlusherTimeout(busStall),
		nats.ErrorHandler(func(_ *nats.Conn, s *nats.Subscription, err error) {
			subject := ""
			if s != nil {
				subject = s.Subject
			}
			j.log.Warn("the bus of the cluster loses messages", "subject", subject, "error", err)
		}))
	return err
}

// Publish implements cluster.Bus.
func (b *Bus) Publish(subject string, data []byte) error {
	if err := b.conn.Publish(b.prefix+subject, data); err != nil {
		return fmt.Errorf("publishing on the bus: %w", err)
	}
	return nil
}

// Request implements cluster.Bus.
func (b *Bus) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	m, err := b.conn.RequestWithContext(ctx, b.prefix+subject, data)
	switch {
	case err == nil:
		return m.Data, nil
	case errors.Is(err, nats.ErrNoResponders):
		err = cluster.ErrNobody
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	return nil, fmt.Errorf("asking %s on the bus: %w", subject, err)
}

// Subscribe implements cluster.Bus. It and stop return once the server knows, unless that is not
// connected: a request after stop finds nobody.
func (b *Bus) Subscribe(subject string, handle func(data []byte, reply func([]byte))) (stop func(), err error) {
	s, err := b.conn.Subscribe(b.prefix+subject, func(m *nats.Msg) {
		if m.Reply == "" {
			handle(m.Data, nil)
			return
		}
		handle(m.Data, func(answer []byte) {
			_ = m.Respond(answer) // the bus may lose messages
		})
	})
	if err == nil {
		err = s.SetPendingLimits(behindMessages, behindBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("subscribing to %s on the bus: %w", subject, err)
	}
	b.flush()
	return func() {
		_ = s.Unsubscribe() // else it has ended with the connection
		b.flush()
	}, nil
}

// flush waits until the server knows what it was told, if it is connected. Else it learns of it
// when it is.
func (b *Bus) flush() {
	if b.conn.IsConnected() {
		_ = b.conn.FlushTimeout(flushTime)
	}
}

func (b *Bus) close() {
	if b != nil && b.conn != nil {
		b.conn.Close()
	}
}
