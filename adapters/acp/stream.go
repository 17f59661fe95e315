package acp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// stream sends the mailbox of a peer as server-sent events: an envelope in the data of
// each, and an event named gap where some were dropped.
func (x *HTTP) stream(w http.ResponseWriter, r *http.Request) {
	p, id, err := x.identify(r, "")
	if err != nil {
		x.refuse(w, wire.Envelope{}, err)
		return
	}
	if x.passOn(w, r, p, id) {
		return
	}
	c, added, err := x.known(p, id)
	if err != nil {
		x.refuse(w, wire.Envelope{}, err)
		return
	}
	defer func() {
		if c != nil {
			x.release(c)
		}
	}()
	var waits *hub.Session // of a reader whose peer is not known
	if c == nil {
		waits = x.hub.Connect(hub.Identity{Principal: p, Dialect: Dialect})
		defer waits.Close(nil)
		if full := waits.Rejected(); full != nil {
			x.refuse(w, wire.Envelope{}, full)
			return
		}
	}
	out := events{w, http.NewResponseController(w)}
	if out.begin(w, id) != nil {
		return
	}
	last := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("last_event_id"))
	if c == nil {
		if last != "" && out.gap(0) != nil { // nothing is kept for a peer that is not known
			return
		}
		last = ""
		if c = x.awaitPeer(r.Context(), out, waits, id, added); c == nil {
			return
		}
		waits.Close(nil) // the peer has a session of its own
	}
	c.readMailbox(r, out, last, func() bool { return x.opts.Forward != nil && !x.has(p, id) })
}

// begin begins the stream of what arrives for a peer.
func (e events) begin(w http.ResponseWriter, id core.AgentID) error {
	_ = e.rc.SetReadDeadline(time.Time{}) // nothing more is read
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return e.write(": what arrives for %s\n\n", id)
}

// readMailbox sends what comes after the event that the reader had last: see sendMailbox.
func (c *caller) readMailbox(r *http.Request, out events, last string, drains func() bool) {
	c.countStream(1)
	defer c.countStream(-1)
	if c.discoverOnce(r) != nil {
		return
	}
	at, unknown := c.mailbox.resume(last)
	if unknown && out.gap(0) != nil {
		return
	}
	c.sendMailbox(r.Context(), out, at, drains)
}

// sendMailbox sends what comes after a number, until the reader has gone or the peer. A peer whose hub drains reads
// on where its next requests go.
func (c *caller) sendMailbox(ctx context.Context, out events, at uint64, drains func() bool) {
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	for {
		items, missed, changed := c.mailbox.after(at)
		if missed > 0 {
			at += missed
			if out.gap(missed) != nil {
				return
			}
		}
		for _, it := range items {
			if it.json == nil {
				at = it.number // a result that was reclaimed
				continue
			}
			if out.envelope(c.mailbox.eventID(it.number), it.json) != nil {
				return
			}
			c.mailbox.read(it)
			at = it.number
		}
		if len(items) > 0 {
			continue
		}
		if changed == nil {
			return
		}
		select {
		case <-changed:
		case <-alive.C:
			if drains() || out.write(": alive\n\n") != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// awaitPeer waits until the peer has made itself known by a POST, and returns its caller: a GET
// makes no peer, as the page of another site can cause one. It returns nil once the reader is
// gone, the hub closes, or the credential of the principal is no longer valid: the session waits
// tells it that.
func (x *HTTP) awaitPeer(ctx context.Context, out events, waits *hub.Session, id core.AgentID, added <-chan struct{}) *caller {
	p := waits.Identity().Principal
	for {
		pause, cancel := context.WithTimeout(ctx, keepAlive)
		_, err := waits.NextOr(pause, added)
		cancel()
		switch {
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			if out.write(": alive\n\n") != nil {
				return nil
			}
		case err != nil:
			return nil
		}
		var c *caller
		if c, added, err = x.known(p, id); c != nil || err != nil {
			return c
		}
	}
}

// countStream counts the requests that read the mailbox.
func (c *caller) countStream(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams += n
}

// hold implements outlet: every envelope is sent by itself.
func (c *caller) hold() {}

// flush implements outlet.
func (c *caller) flush() {}

// away implements outlet: nobody reads the mailbox.
func (c *caller) away() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams == 0
}

// owed implements outlet.
func (c *caller) owed() []pendingResult { return c.mailbox.owed() }

// reclaim implements outlet.
func (c *caller) reclaim(of func(core.TaskID) bool) []pendingResult { return c.mailbox.reclaim(of) }

// discoverOnce asks the peer for its capabilities when it first reads its mailbox.
func (c *caller) discoverOnce(r *http.Request) error {
	c.mu.Lock()
	probed := c.discovered
	c.discovered = true
	c.mu.Unlock()
	if probed {
		return nil
	}
	return c.s.discover(r.Context())
}

// events writes server-sent events.
type events struct {
	w  io.Writer
	rc *http.ResponseController
}

func (e events) envelope(id string, envelope []byte) error {
	return e.write("id: %s\ndata: %s\n\n", id, bytes.TrimSpace(envelope))
}

// gap writes that events were dropped: how many, or 0 if that is not known.
func (e events) gap(missed uint64) error {
	return e.write("event: gap\ndata: {\"missed\":%d}\n\n", missed)
}

func (e events) write(format string, args ...any) error {
	_ = e.rc.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every ResponseWriter has one
	if _, err := fmt.Fprintf(e.w, format, args...); err != nil {
		return err
	}
	return e.rc.Flush()
}
