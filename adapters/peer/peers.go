package peer

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// Peers are the other hubs of a cluster, by name. The zero Peers have none. They are safe for
// concurrent use.
type Peers struct {
	mu   sync.Mutex
	all  map[string]*Peer
	last map[string]*Peer // the last one of each name, which may be closed
}

var _ hub.Peers = (*Peers)(nil)

// Open implements [hub.Peers].
func (p *Peers) Open(to string, o hub.Opening) error {
	letter, err := encodeOpening(o)
	return p.send(to, letter, err)
}

// Do implements [hub.Peers].
func (p *Peers) Do(to string, c core.Call) error {
	letter, err := encodeCall(c)
	return p.send(to, letter, err)
}

// Tell implements [hub.Peers].
func (p *Peers) Tell(to string, n hub.News) error {
	letter, err := encode(letterNews, n)
	return p.send(to, letter, err)
}

// Hand implements [hub.Peers].
func (p *Peers) Hand(to string, o hub.Handover) error {
	letter, err := encodeHandover(o)
	return p.send(to, letter, err)
}

// Took implements [hub.Peers].
func (p *Peers) Took(to string, m hub.Move, ok bool) error {
	kind := byte(letterRefused)
	if ok {
		kind = letterTaken
	}
	return p.send(to, encodeMove(kind, m), nil)
}

// Kept implements [hub.Peers].
func (p *Peers) Kept(to string, m hub.Move) error {
	return p.send(to, encodeMove(letterKept, m), nil)
}

// Leave implements [hub.Peers].
func (p *Peers) Leave(to string, id core.TaskID) error {
	return p.send(to, append([]byte{letterLeave}, id...), nil)
}

// Follow implements [hub.Peers].
func (p *Peers) Follow(to string, id core.TaskID, after core.Cursor) error {
	o, err := p.get(to)
	if err == nil {
		o.follow(id, after)
	}
	return err
}

// Ask implements [hub.Peers].
func (p *Peers) Ask(ctx context.Context, to string, q hub.Inquiry) (json.RawMessage, error) {
	o, err := p.get(to)
	if err != nil {
		return nil, err
	}
	return o.ask(ctx, q)
}

// Visit implements [hub.Peers].
func (p *Peers) Visit(to, service string, by core.Principal) (hub.Conn, error) {
	o, err := p.get(to)
	if err != nil {
		return nil, err
	}
	return o.visit(service, by)
}

func (p *Peers) send(to string, letter []byte, err error) error {
	if err != nil {
		return err
	}
	o, err := p.get(to)
	if err != nil {
		return err
	}
	return o.send(letter)
}

func (p *Peers) get(name string) (*Peer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o := p.all[name]; o != nil {
		return o, nil
	}
	return nil, core.NewFault(core.CodeUnreachable, "hub %s is not connected: ask again in a moment", name)
}

// add adds a Peer. One of the same life goes on with the letters of the Peer before, for the other
// hub does, too.
func (p *Peers) add(name string, o *Peer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all, p.last = map[string]*Peer{}, map[string]*Peer{}
	}
	if before := p.last[name]; before != nil && before.opts.Epoch == o.opts.Epoch {
		o.mail = before.mail
	}
	p.all[name], p.last[name] = o, o
}

func (p *Peers) remove(name string, o *Peer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all[name] == o {
		delete(p.all, name)
	}
}
