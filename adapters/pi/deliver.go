package pi

import (
	"context"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// deliver sends the items of the outbox in order, up to one that must wait for the end of a
// step. Items that are added meanwhile wait for the next call, so that broadcasts cannot
// starve the hub's events. It reports false once the connection is to end.
func (c *connection) deliver(ctx context.Context) bool {
	c.hub.Told()
	for range c.out.len() {
		it, ok := c.out.take(c.blocked)
		if !ok {
			return true
		}
		if !c.deliverOne(ctx, it) {
			return false
		}
	}
	return true
}

// blocked reports whether the item must wait for the end of a step.
func (c *connection) blocked(it item) bool {
	after := it.fence
	if it.step != nil {
		after = it.step.before
	}
	if after == nil || c.hubGone {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, unfinished := c.views[after]
	return unfinished
}

func (c *connection) deliverOne(ctx context.Context, it item) bool {
	var err error
	if it.frame != nil {
		if of := c.answeredTask(it); of != "" {
			c.delivery.BeginAnswer(of)
			defer c.delivery.End()
		}
		err = c.link.Send(ctx, it.frame, len(it.frame))
	}
	c.after = it.fence
	c.out.sent(it) // the events of a step wait in the hub
	switch {
	case it.step != nil:
		return c.sendStep(ctx, it.step)
	case it.last != nil:
		c.link.Close(*it.last)
		return false
	}
	return err == nil
}

// answeredTask returns the task that a frame belongs to which is none of its events, "" for none or
// where no frames are kept.
func (c *connection) answeredTask(it item) core.TaskID {
	switch {
	case c.delivery == nil:
	case it.answers != nil:
		return it.answers.task
	case c.after != nil && c.after.task != nil: // such as agent_end
		return c.after.task.ID()
	}
	return ""
}

// sendStep begins to send a step: its opening now, the events of its task as the pump reads
// them.
func (c *connection) sendStep(ctx context.Context, st *step) bool {
	if !c.isSubscribed(st.run.session) {
		return true
	}
	if st.task != nil && c.delivery != nil { // before the hub has told of any event
		c.delivery.Begin(st.task.ID(), false, core.Event{Seq: 1, Body: core.Opened{}})
		defer c.delivery.End()
	}
	if !c.send(ctx, st.opening) {
		return false
	}
	s := c.server
	if st.task == nil {
		var v render.View
		v.Begin(st.run.session.renderTask(""), &c.frames, c.snapshots)
		st.answer(&v)
		v.Flush()
		return c.frames.Send(ctx, c.link)
	}
	s.engine.Lock()
	defer s.engine.Unlock()
	if _, reads := c.subscriptions[st.run.session]; !reads {
		return true
	}
	c.mu.Lock()
	v := c.spareView
	if c.spareView = nil; v == nil {
		v = &render.View{}
	}
	shown := st.run.session.renderTask(st.task.ID())
	shown.MayDecide = func() bool { return s.hub.MayDecide(c.principal, st.task) }
	v.Begin(shown, &c.frames, c.snapshots)
	c.views[st] = v
	c.mu.Unlock()
	_ = c.hub.Watch(st.task, core.Cursor{}, st) // the beginning is a cursor of every task
	return true
}

func (c *connection) isSubscribed(ss *session) bool {
	c.server.engine.Lock()
	defer c.server.engine.Unlock()
	_, ok := c.subscriptions[ss]
	return ok
}

func (c *connection) send(ctx context.Context, frames [][]byte) bool {
	for _, f := range frames {
		if c.link.Send(ctx, f, len(f)) != nil {
			return false
		}
	}
	return true
}

// unauthenticated is why the hub ends a session whose principal is no longer valid, unreachable why it ends
// all when it stops.
var (
	unauthenticated = &core.Fault{Code: core.CodeUnauthenticated}
	unreachable     = &core.Fault{Code: core.CodeUnreachable}
)

// pump sends the client its outbox and the events that the hub has for it, until the link
// closes or the hub stops.
func (c *connection) pump(ctx context.Context) {
	c.link.Hold()
	defer c.link.Flush()
	for c.deliver(ctx) {
		b, err := c.next(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, unauthenticated):
			c.link.Close(link.Reason{Cause: link.Unauthorized, Text: core.AsFault(err).Message, Code: 1008})
			return
		case err != nil && !errors.Is(err, unreachable):
			c.link.Close(link.Reason{Cause: link.Protocol, Text: core.AsFault(err).Message, Code: 1008})
			return
		case err != nil:
			c.leave(ctx)
			return
		case b.Draining != "":
			if c.drain(); c.late {
				c.push(c.stopped())
				c.hubGone = true
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
		if b.Gap != nil {
			v.Gap(b.Gap.From, b.Gap.To, time.Now())
		}
		ended := false
		for _, e := range b.Events {
			_ = e.Deliver(v) // a view returns no error
			ended = ended || e.Body.Kind().Ends()
		}
		if v.Flush(); !c.frames.Send(ctx, c.link) {
			return
		}
		if ended {
			c.mu.Lock()
			delete(c.views, st)
			c.spareView = v
			*v = render.View{}
			c.mu.Unlock()
		}
	}
}

// next returns the next batch of the hub, or an empty one when there may be more in the
// outbox. It flushes the link before it blocks.
func (c *connection) next(ctx context.Context) (hub.Batch, error) {
	b, err := c.hub.NextOr(ctx, closedChannel)
	if err != nil || b.Tag != nil || b.Draining != "" {
		return b, err
	}
	select {
	case <-c.out.ready:
		return b, nil
	default:
	}
	c.link.Flush()
	b, err = c.hub.NextOr(ctx, c.out.ready)
	c.link.Hold()
	return b, err
}

// closedChannel never blocks a receive.
var closedChannel = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// drain tells the client that the hub is stopping. Runs may still end.
func (c *connection) drain() {
	s := c.server
	s.engine.Lock()
	s.engine.Drain()
	s.engine.Unlock()
	c.push(item{frame: render.ServerEvent("server_shutdown", strictjson.Encode(map[string]any{
		"reason": "graceful_shutdown", "timeoutMs": s.opts.DrainTimeout.Milliseconds(),
	}))})
}

// stopped is the item that ends a connection because the server is stopping.
func (c *connection) stopped() item {
	text := "Server shutting down"
	if where := c.server.hub.Elsewhere(); where != "" {
		text += ": " + where
	}
	return item{last: &link.Reason{Cause: link.ShuttingDown, Text: text, Code: 1001}}
}

// leave ends the connection once everything that the server has for it was sent.
func (c *connection) leave(ctx context.Context) {
	c.hubGone = true
	idle := c.server.engine.Idle()
	for c.deliver(ctx) {
		c.link.Flush()
		select {
		case <-c.out.ready:
		case <-idle:
			c.push(c.stopped())
			idle = nil
		case <-ctx.Done():
			return
		}
	}
}
