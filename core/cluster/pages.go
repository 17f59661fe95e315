package cluster

import (
	"cmp"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// snapshot is one version of this hub's part of the roster, for those who ask for the whole.
type snapshot struct {
	at     uint64
	digest digest
	agents []*shown // ordered by id
	used   time.Time
}

const (
	// snapshotLife is how long a snapshot is kept for the next page.
	snapshotLife = 5 * time.Second
	// maxSnapshots bounds how many there are: as many hubs can ask at once while agents change.
	maxSnapshots = 16
	// pageBytes is about how large a page is.
	pageBytes = 256 << 10
)

// page returns a page of the part.
func (o *own) page(ask rosterAsk, now time.Time) rosterPage {
	s := o.snapshot(ask, now)
	if s == nil {
		return rosterPage{form: of(kindRosterPage), Again: true}
	}
	p := rosterPage{form: of(kindRosterPage), At: s.at, Digest: s.digest}
	from := 0
	if ask.After != "" {
		from = s.after(ask.After)
	}
	size, last := 0, core.AgentID("")
	for _, a := range s.agents[from:] {
		_, it, err := newShown(a.Entry)
		if err != nil {
			continue // it was written before
		}
		if size > 0 && size+len(it.Agent) > pageBytes {
			p.Next = last
			break
		}
		p.Agents, last = append(p.Agents, it), a.Card.ID
		size += len(it.Agent) + len(it.Load)
	}
	return p
}

// after returns the position behind an agent.
func (s *snapshot) after(id core.AgentID) int {
	i, found := slices.BinarySearchFunc(s.agents, id, func(a *shown, id core.AgentID) int { return cmp.Compare(a.Card.ID, id) })
	if found {
		i++
	}
	return i
}

// snapshot returns the version that is asked for: nil if it is no longer kept.
func (o *own) snapshot(ask rosterAsk, now time.Time) *snapshot {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.snapshots = slices.DeleteFunc(o.snapshots, func(s *snapshot) bool { return now.Sub(s.used) > snapshotLife })
	want := ask.At
	if ask.After == "" {
		want = o.at
	}
	for _, s := range o.snapshots {
		if s.at == want {
			s.used = now
			return s
		}
	}
	if ask.After != "" {
		return nil
	}
	s := &snapshot{at: o.at, digest: o.digest, used: now, agents: make([]*shown, 0, len(o.agents))}
	for _, a := range o.agents {
		if a.told != nil {
			s.agents = append(s.agents, a.told)
		}
	}
	slices.SortFunc(s.agents, func(a, b *shown) int { return cmp.Compare(a.Card.ID, b.Card.ID) })
	o.snapshots = append(o.snapshots, s)
	if len(o.snapshots) > maxSnapshots {
		oldest := slices.MinFunc(o.snapshots, func(a, b *snapshot) int { return a.used.Compare(b.used) })
		o.snapshots = slices.DeleteFunc(o.snapshots, func(s *snapshot) bool { return s == oldest })
	}
	return s
}
