package cluster

import (
	"fmt"

	"github.com/dragoman-hub/dragoman/core"
)

// part is another hub's part of the roster, as this one knows it.
type part struct {
	agents map[core.AgentID]*shown
	at     uint64
	digest digest
	// whole says that it was complete at that version: if not, it has to be asked for.
	whole bool
	// early are the deltas that came while it was not.
	early      []delta
	earlyBytes int
	// news are the agents that the engine has to be told of, in the order in which they changed.
	news []core.AgentID
	due  map[core.AgentID]bool // those in news
}

// maxEarly bounds the deltas that wait for the whole. Without them it is asked for once more.
const maxEarly = 4 << 20

func newPart() *part {
	return &part{agents: map[core.AgentID]*shown{}, due: map[core.AgentID]bool{}, whole: true}
}

// take applies a delta: at once if it is the next one, after the whole if there is a hole.
func (p *part) take(d delta, size int) error {
	switch {
	case d.At <= p.at:
		return nil // it came twice, or is in the whole that was read
	case p.whole && d.At == p.at+1:
		return p.apply(d)
	}
	p.whole = false
	if p.earlyBytes += size; p.earlyBytes <= maxEarly {
		p.early = append(p.early, d)
	}
	return nil
}

// apply applies the next delta. After an error the part has to be asked for.
func (p *part) apply(d delta) error {
	p.at = d.At
	for _, id := range d.Gone {
		p.set(id, nil)
	}
	for _, it := range d.Agents {
		a, err := readShown(it)
		if err != nil {
			p.whole = false
			return err
		}
		p.set(a.Card.ID, a)
	}
	for _, it := range d.Loads {
		old := p.agents[it.ID]
		if old == nil {
			p.whole = false
			return fmt.Errorf("there is a load of an unknown agent %q", it.ID)
		}
		l, err := readLoad(it.Load)
		if err != nil {
			p.whole = false
			return err
		}
		with := *old
		with.Load, with.loadSum = l, sumOfLoad(it.ID, it.Load)
		p.set(it.ID, &with)
	}
	return nil
}

// set sets or, with nil, removes an agent.
func (p *part) set(id core.AgentID, a *shown) {
	p.digest += a.sum() - p.agents[id].sum()
	if a == nil {
		delete(p.agents, id)
	} else {
		p.agents[id] = a
	}
	p.note(id)
}

// note says that the engine has to be told of an agent.
func (p *part) note(id core.AgentID) {
	if !p.due[id] {
		p.due[id] = true
		p.news = append(p.news, id)
	}
}

// compare compares the part with the version and digest that its hub has.
func (p *part) compare(at uint64, d digest) {
	if at > p.at || at == p.at && d != p.digest {
		p.whole = false
	}
}

// whole is all of a part in one version.
type whole struct {
	at     uint64
	digest digest
	agents map[core.AgentID]*shown
}

// replace makes the part the whole that was read, and applies what came meanwhile.
func (p *part) replace(w whole) error {
	early := p.early
	p.early, p.earlyBytes = nil, 0
	for id := range p.agents {
		if w.agents[id] == nil {
			p.set(id, nil)
		}
	}
	for id, a := range w.agents {
		if old := p.agents[id]; old == nil || old.sum() != a.sum() {
			p.set(id, a)
		}
	}
	if p.at, p.whole = w.at, p.digest == w.digest; !p.whole {
		return fmt.Errorf("the digest is %x after reading all of version %d: want %x", p.digest, w.at, w.digest)
	}
	for _, d := range early {
		if err := p.take(d, 0); err != nil {
			return err
		}
	}
	return nil
}
