package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/timer"
)

const (
	pageTimeout = time.Second
	fetchAgain  = 100 * time.Millisecond
	// maxPages bounds the pages of a part: 16 GiB.
	maxPages = 1 << 16
)

// answerRoster answers a hub that asks for a page of this hub's part of the roster.
func (c *Cluster) answerRoster(data []byte, reply func([]byte)) {
	ask, err := read[rosterAsk](data, kindRosterAsk)
	if err != nil || reply == nil {
		return
	}
	p := rosterPage{form: of(kindRosterPage), Again: true}
	if ask.Epoch == c.s.Life.Epoch {
		p = c.own.page(ask, time.Now())
	}
	p.Epoch = c.s.Life.Epoch
	reply(encode(p))
}

// fetch reads the part of a hub until it is whole.
func (c *Cluster) fetch(ctx context.Context, r *record) {
	for {
		c.mu.Lock()
		life := r.life()
		r.fetching = ctx.Err() == nil && r.present() && !r.part.whole
		going := r.fetching
		c.mu.Unlock()
		if !going {
			return
		}
		w, err := c.fetchWhole(ctx, life)
		if err == nil {
			err = c.replace(r, life, w)
		}
		if err != nil && ctx.Err() == nil {
			c.s.Log.Debug("the agents of a hub could not be read", "life", life, "error", err)
			_ = timer.Sleep(ctx, fetchAgain)
		}
	}
}

// replace makes a part that which was read.
func (c *Cluster) replace(r *record, of journal.Life, w whole) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.life() != of || !r.present() {
		return nil
	}
	if w.at < r.part.at {
		return fmt.Errorf("the version %d is older than %d", w.at, r.part.at)
	}
	err := r.part.replace(w)
	c.note(r)
	return err
}

// fetchWhole reads all pages of a part.
func (c *Cluster) fetchWhole(ctx context.Context, of journal.Life) (whole, error) {
	w := whole{agents: map[core.AgentID]*shown{}}
	after := core.AgentID("")
	for range maxPages {
		p, err := c.fetchPage(ctx, of, rosterAsk{Epoch: of.Epoch, At: w.at, After: after})
		if err != nil {
			return w, err
		}
		w.at, w.digest = p.At, p.Digest
		for _, it := range p.Agents {
			a, err := readShown(it)
			if err != nil {
				return w, err
			}
			w.agents[a.Card.ID] = a
		}
		if p.Next == "" {
			return w, nil
		}
		if p.Next <= after {
			return w, fmt.Errorf("the page after %q ends at %q", after, p.Next)
		}
		after = p.Next
	}
	return w, errors.New("there are too many pages")
}

func (c *Cluster) fetchPage(ctx context.Context, of journal.Life, ask rosterAsk) (p rosterPage, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	ask.form = form{version, kindRosterAsk}
	answer, err := c.s.Bus.Request(ctx, subjectOf(of.Hub, requestRoster), encode(ask))
	if err != nil {
		return p, fmt.Errorf("asking for agents: %w", err)
	}
	if p, err = read[rosterPage](answer, kindRosterPage); err != nil {
		return p, err
	}
	switch {
	case p.Epoch != of.Epoch:
		return p, fmt.Errorf("the hub is in its life %d", p.Epoch)
	case p.Again, ask.After != "" && p.At != ask.At:
		return p, errors.New("the version has gone")
	}
	return p, nil
}
