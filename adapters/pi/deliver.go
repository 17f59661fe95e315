package pi

import (
	"context"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// deliver sends what is in the outbox, in order, until the link closes.
func (c *connection) deliver(ctx context.Context) {
	var items []item
	for {
		var err error
		if items, err = c.out.take(ctx, items); err != nil {
			return
		}
		for i, it := range items {
			if !c.deliverOne(ctx, it) {
				return
			}
			items[i] = item{}
		}
	}
}

func (c *connection) deliverOne(ctx context.Context, it item) bool {
	if it.frame == nil {
		c.out.sent(it) // what a run has to tell from here on waits in the hub
	}
	switch {
	case it.step != nil:
		return c.tell(ctx, it.step)
	case it.fence != nil:
		return c.await(ctx, it.fence)
	case it.last != nil:
		c.link.Close(*it.last)
		return false
	}
	err := c.link.Send(ctx, it.frame, len(it.frame))
	c.out.sent(it)
	return err == nil
}

// tell begins to tell a step, once the one before it has been told: its opening now,
// the events of its task as the pump reads them.
func (c *connection) tell(ctx context.Context, st *step) bool {
	if st.before != nil && !c.await(ctx, st.before) {
		return false
	}
	if !c.reads(st.run.session) {
		return true
	}
	if !c.send(ctx, st.opening) {
		return false
	}
	s := c.server
	if st.task == nil {
		v := newView(s.sceneOf(st.run.session, ""), c.told)
		st.answer(v)
		return c.send(ctx, v.take())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, reads := c.reading[st.run.session]; !reads {
		return true
	}
	c.mu.Lock()
	c.views[st] = newView(s.sceneOf(st.run.session, st.task.ID()), c.told)
	c.mu.Unlock()
	_ = c.hub.Watch(st.task, core.Cursor{}, st) // the beginning is a cursor of every task
	return true
}

func (c *connection) reads(ss *session) bool {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	_, ok := c.reading[ss]
	return ok
}

// await waits until a step has been told, or is told no further.
func (c *connection) await(ctx context.Context, st *step) bool {
	for {
		c.mu.Lock()
		_, telling := c.views[st]
		c.mu.Unlock()
		if !telling {
			return true
		}
		select {
		case <-c.done:
		case <-c.pumped:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

func (c *connection) send(ctx context.Context, frames [][]byte) bool {
	for _, f := range frames {
		if c.link.Send(ctx, f, len(f)) != nil {
			return false
		}
	}
	return true
}

// unauthenticated is why the hub ends a session whose principal is nobody any more.
var unauthenticated = &core.Fault{Code: core.CodeUnauthenticated}

// pump reads what the hub has for the client and tells it, until the link closes or
// the hub stops.
func (c *connection) pump(ctx context.Context) {
	defer close(c.pumped)
	var room []byte // which the frames of all runs share
	for {
		b, err := c.hub.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, unauthenticated):
			// Whoever is nobody any more is told nothing more, but why.
			c.link.Close(link.Reason{Cause: link.Unauthorized, Text: core.AsFault(err).Message, Code: 1008})
			return
		case err != nil:
			c.leave(ctx)
			return
		case b.Draining != "":
			if c.drain(); c.late {
				c.push(stopped)
				return
			}
			continue
		}
		st, _ := b.Tag.(*step)
		c.mu.Lock()
		v := c.views[st]
		c.mu.Unlock()
		if v == nil {
			continue
		}
		v.out.room = room
		if b.Gap != nil {
			v.gap(b.Gap.From, b.Gap.To, time.Now())
		}
		ended := false
		for _, e := range b.Events {
			_ = e.Deliver(v) // a view returns no error
			ended = ended || e.Body.Kind().Ends()
		}
		told := v.take()
		room = v.out.room
		if !c.send(ctx, told) {
			return
		}
		if ended {
			c.mu.Lock()
			delete(c.views, st)
			c.mu.Unlock()
			signal(c.done)
		}
	}
}

// drain tells the client that the hub is stopping. What runs may still end.
func (c *connection) drain() {
	s := c.server
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	c.push(item{frame: serverEvent("server_shutdown", map[string]any{
		"reason": "graceful_shutdown", "timeoutMs": s.opts.DrainTimeout.Milliseconds(),
	})})
}

// stopped ends a connection because the server is stopping.
var stopped = item{last: &link.Reason{Cause: link.ShuttingDown, Text: "Server shutting down", Code: 1001}}

// leave ends the connection behind everything that the server still has for it.
func (c *connection) leave(ctx context.Context) {
	select {
	case <-c.server.idle:
	case <-ctx.Done():
	}
	c.push(stopped)
}
