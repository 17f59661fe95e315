package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/timer"
)

const (
	pingTimeout = 200 * time.Millisecond
	pingEvery   = 100 * time.Millisecond
)

// ping asks a hub whether it is there, for as long as it is suspected.
func (c *Cluster) ping(ctx context.Context, r *record) {
	for {
		err := c.pingOnce(ctx, r.name)
		c.mu.Lock()
		if errors.Is(err, ErrNobody) {
			r.nobody++
			fifo.Signal(c.judge)
		}
		unsure := !r.forgotten && (r.state == Suspect || r.state.heard() && r.nobody > 0)
		r.pinging = unsure
		c.mu.Unlock()
		if !unsure || timer.Sleep(ctx, pingEvery) != nil {
			return
		}
	}
}

func (c *Cluster) pingOnce(ctx context.Context, hub string) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	b, err := present(ctx, c.s.Bus, hub)
	if err == nil {
		c.hearBeat(b)
	}
	return err
}

func present(ctx context.Context, bus Bus, hub string) (*beat, error) {
	answer, err := bus.Request(ctx, subjectOf(hub, requestPing), nil)
	if err != nil {
		return nil, err
	}
	b, err := read[beat](answer, kindBeat)
	return &b, err
}

// Present returns the hub that runs under a name: a second one of that name must not start. It
// returns an error that wraps [ErrNobody] if there is none.
func Present(ctx context.Context, bus Bus, name string) (Hub, error) {
	b, err := present(ctx, bus, name)
	if err != nil {
		return Hub{}, err
	}
	return Hub{Name: b.Hub, Index: b.Index, Epoch: b.Epoch, State: Up, Agents: b.Agents, Tasks: b.Tasks, Since: b.Since, Address: b.Address}, nil
}
