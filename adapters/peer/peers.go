package peer

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster/remote"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/rpc"
)

// Peers are the other hubs of a cluster, by name. The zero Peers have none. They are safe for
// concurrent use.
type Peers struct {
	mu   sync.Mutex
	all  map[string]*Peer
	last map[string]*Peer // the last one of each name, which may be closed
}

var _ remote.Links = (*Peers)(nil)

// Open implements [remote.Links].
func (p *Peers) Open(to string, o hub.Opening) error {
	letter, err := encodeOpening(o)
	return p.send(to, letter, err)
}

// Do implements [remote.Links].
func (p *Peers) Do(to string, c core.Call) error {
	letter, err := encodeCall(c)
	return p.send(to, letter, err)
}

// Tell implements [remote.Links].
func (p *Peers) Tell(to string, t rpc.Told) error {
	letter, err := encode(letterNews, t)
	return p.send(to, letter, err)
}

// Hand implements [remote.Links].
func (p *Peers) Hand(to string, t remote.Transfer) error {
	letter, err := encodeTransfer(t)
	return p.send(to, letter, err)
}

// Took implements [remote.Links].
func (p *Peers) Took(to string, r remote.Record, ok bool) error {
	kind := byte(letterRefused)
	if ok {
		kind = letterTaken
	}
	return p.send(to, encodeRecord(kind, r), nil)
}

// Kept implements [remote.Links].
func (p *Peers) Kept(to string, r remote.Record) error {
	return p.send(to, encodeRecord(letterKept, r), nil)
}

// Leave implements [remote.Links].
func (p *Peers) Leave(to string, id core.TaskID) error {
	return p.send(to, append([]byte{letterLeave}, id...), nil)
}

// Follow implements [remote.Links].
func (p *Peers) Follow(to string, id core.TaskID, after core.Cursor) error {
	o, err := p.get(to)
	if err == nil {
		o.follow(id, after)
	}
	return err
}

// Ask implements [remote.Links].
func (p *Peers) Ask(ctx context.Context, to string, q rpc.Request) (json.RawMessage, error) {
	o, err := p.get(to)
	if err != nil {
		return nil, err
	}
	return o.ask(ctx, q)
}

// Dial implements [remote.Links].
func (p *Peers) Dial(to, service string, by core.Principal) (rpc.Conn, error) {
	o, err := p.get(to)
	if err != nil {
		return nil, err
	}
	return o.dial(service, by)
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
