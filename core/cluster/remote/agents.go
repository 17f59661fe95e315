package remote

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/roster"
)

// claimTime is how long the claim of an id in the cluster may take.
const claimTime = 10 * time.Second

// Join implements [hub.Remote].
func (r *Hubs) Join(ctx context.Context, e roster.Entry, number uint64, by core.Principal) error {
	if r.cluster == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, claimTime)
	defer cancel()
	return r.cluster.Claim(ctx, entryOf(&e, number, by))
}

// Agent implements [hub.Remote].
func (r *Hubs) Agent(id core.AgentID, number uint64, by core.Principal, e *roster.Entry) {
	switch {
	case r.cluster == nil:
	case e == nil:
		r.cluster.Unclaim(id, number)
	default:
		r.cluster.Put(entryOf(e, number, by))
	}
}

func entryOf(e *roster.Entry, number uint64, by core.Principal) cluster.Entry {
	return cluster.Entry{Card: e.Card, Principal: by, Connection: number, Since: e.Since, OnlyByID: e.OnlyByID, Child: e.Child, Load: loadOf(e)}
}

func loadOf(e *roster.Entry) cluster.Load {
	return cluster.Load{Reported: e.Reported, Active: e.Load.Active, Queued: e.Load.Queued, MinHops: e.MinHops, HopsUntil: e.HopsUntil}
}

// Release closes the connection of an agent that has come to another hub, if it has to give its
// id up there, and answers.
func (r *Hubs) Release(ctx context.Context, q cluster.Release) {
	if left, said := r.GiveUp(ctx, q.Agent, q.Connection, q.For, q.Must); said {
		q.Answer(left)
	}
}

// AgentUp adds an agent of another hub, or replaces what is known of it. It does nothing if this
// hub has an agent with the id.
func (r *Hubs) AgentUp(name string, e roster.Entry, by core.Principal) {
	e.Hub, e.Member = name, &member{by}
	r.AgentSeen(e)
}

// member is the connection of an agent at another hub, as the roster sees it.
type member struct{ principal core.Principal }

// Principal implements [roster.Member].
func (m *member) Principal() core.Principal { return m.principal }

var _ hub.Remote = (*Hubs)(nil)
