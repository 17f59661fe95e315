package peer

import (
	"context"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// Peers are the connections of a hub to the other hubs of its cluster. The zero Peers have none.
// They are safe for concurrent use.
type Peers struct {
	mu  sync.Mutex
	all map[string]*Connection
}

var _ hub.Peers = (*Peers)(nil)

// Open implements [hub.Peers].
func (p *Peers) Open(to string, o hub.Opening) error {
	frame, err := encodeOpening(o)
	if err != nil {
		return err
	}
	return p.send(to, frame)
}

// Do implements [hub.Peers].
func (p *Peers) Do(to string, c core.Call) error {
	frame, err := encodeCall(c)
	if err != nil {
		return err
	}
	return p.send(to, frame)
}

// Hand implements [hub.Peers].
func (p *Peers) Hand(to string, o hub.Handover) error {
	frame, err := encodeHandover(o)
	if err != nil {
		return err
	}
	return p.send(to, frame)
}

// Answer implements [hub.Peers].
func (p *Peers) Answer(to string, id core.TaskID, taken bool) error {
	letter := byte(frameRefused)
	if taken {
		letter = frameTaken
	}
	return p.send(to, append([]byte{letter}, id...))
}

// Follow implements [hub.Peers].
func (p *Peers) Follow(to string, id core.TaskID) error {
	return p.send(to, append([]byte{frameFollow}, id...))
}

// Leave implements [hub.Peers].
func (p *Peers) Leave(to string, id core.TaskID) {
	_ = p.send(to, append([]byte{frameLeave}, id...)) // else that hub tells of it in vain
}

// now is a context that has ended: a queue that is full refuses instead of waiting.
var now = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

func (p *Peers) send(to string, frame []byte) error {
	p.mu.Lock()
	c := p.all[to]
	p.mu.Unlock()
	if c == nil {
		return core.NewFault(core.CodeUnreachable, "hub %s is not connected: ask again in a moment", to)
	}
	if err := c.link.Send(now, frame, len(frame)); err != nil {
		f := core.NewFault(core.CodeOverloaded, "hub %s takes no more commands now: ask again in a moment", to)
		return f.Because(err)
	}
	return nil
}

// add makes a connection that to the hub of a name. It replaces an earlier one.
func (p *Peers) add(name string, c *Connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[string]*Connection{}
	}
	p.all[name] = c
}

func (p *Peers) remove(name string, c *Connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all[name] == c {
		delete(p.all, name)
	}
}
