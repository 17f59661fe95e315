package hub

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// What the parts of a dialect at several hubs have with each other, beside tasks: visits, and
// inquiries of their own.

// Conn is a connection of a visitor: see [Hub.Visit].
type Conn = link.Conn[[]byte, []byte]

// visits are what other hubs find here. Hub.mu guards them.
type visits struct {
	services map[string]func(ctx context.Context, by core.Principal, conn Conn)
	matters  map[string]answerer
}

// Host has visitors of a service served, who were authenticated at other hubs. serve returns when
// the visit is over; ctx ends with the connection to their hub.
func (h *Hub) Host(service string, serve func(ctx context.Context, by core.Principal, conn Conn)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.visits.services == nil {
		h.visits.services = map[string]func(context.Context, core.Principal, Conn){}
	}
	h.visits.services[service] = serve
}

// Visit passes a principal, which was authenticated here, on to the service at another hub that has
// its state. The connection ends when that hub is gone. It does not wait; it returns an unreachable
// Fault if the hub is not connected.
func (h *Hub) Visit(hub, service string, by core.Principal) (Conn, error) {
	if h.others.peers == nil {
		return nil, core.NewFault(core.CodeUnreachable, "this hub is alone: there is no hub %s", hub)
	}
	return h.others.peers.Visit(hub, service, by)
}

// Visited serves a visitor from another hub, and returns when the visit is over. The connection of
// a service that this version does not have is closed.
func (h *Hub) Visited(ctx context.Context, service string, by core.Principal, conn Conn) {
	h.mu.Lock()
	serve := h.visits.services[service]
	h.mu.Unlock()
	if serve == nil {
		_ = conn.Close(*link.Because(link.Protocol, "this hub does not have the service %q: it is of another version", service))
		return
	}
	serve(ctx, by, conn)
	_ = conn.Close(link.Reason{Cause: link.Normal})
}

// Index returns the index of this hub in its cluster.
func (h *Hub) Index() int { return h.ownIndex }

// HubAt returns the name of another hub of the cluster by its index, if it is up.
func (h *Hub) HubAt(index int) (name string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	name = h.others.byIndex[index]
	return name, h.others.up[name]
}

// HomeOf returns which of this hub and others is to have what a key names, as long as nobody has it:
// the same at all of them that see the same others. It returns "" for this one. A hub that takes
// nothing new is no home, but for this one where no other hub takes anything either.
func (h *Hub) HomeOf(key string, others []string) (hub string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	open := slices.DeleteFunc(slices.Clone(others), func(name string) bool { return h.others.draining[name] })
	return h.first(key, open, h.end.reason == "")
}

// first returns which of others, and of this hub if it is a candidate too, goes first for a key. It
// returns "" for this one, and if there is no candidate. Callers hold mu.
func (h *Hub) first(key string, others []string, own bool) (hub string) {
	var best uint64
	if own {
		best = weight(key, h.ownIndex)
	}
	for _, name := range others {
		index, known := h.others.indices[name]
		if w := weight(key, index); known && w > best {
			hub, best = name, w
		}
	}
	return hub
}

// weight orders the hubs for a key, so that only those keys move whose hub comes or goes.
func weight(key string, index int) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write(strconv.AppendInt([]byte(key+"\x00"), int64(index), 10)) // it never fails
	w := sum.Sum64()
	w ^= w >> 33 // the last bytes alone change too little
	w *= 0xff51afd7ed558ccd
	return w ^ w>>33
}

// Clustered reports whether there may be other hubs.
func (h *Hub) Clustered() bool { return h.others.peers != nil }

// Matter is something that the parts of a dialect at several hubs ask each other: its name, which
// begins with that of the dialect.
type Matter[In, Out any] string

// Answered is what another hub has said.
type Answered[Out any] struct {
	Hub string
	Out Out
}

// Answer answers the matter at a hub: with what that one has, without asking others. It may wait
// until ctx ends.
func (m Matter[In, Out]) Answer(h *Hub, answer func(ctx context.Context, by core.Principal, in In) (Out, error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.visits.matters == nil {
		h.visits.matters = map[string]answerer{}
	}
	h.visits.matters[string(m)] = inquiry[In, Out]{string(m), func(ctx context.Context, _ *Hub, by core.Principal, in In) (Out, error) { return answer(ctx, by, in) }}
}

// Ask asks another hub for a principal, which passed the door of this one. It waits until ctx ends.
func (m Matter[In, Out]) Ask(ctx context.Context, h *Hub, hub string, by core.Principal, in In) (out Out, err error) {
	if h.others.peers == nil {
		return out, core.NewFault(core.CodeUnreachable, "this hub is alone: there is no hub %s", hub)
	}
	return inquiry[In, Out]{what: string(m)}.ask(ctx, h, hub, by, in)
}

// AskAll asks all other hubs at once, and waits for 2 seconds. It returns what those say that answer
// in time, and the names of the others. A hub alone asks nobody.
func (m Matter[In, Out]) AskAll(ctx context.Context, h *Hub, by core.Principal, in In) (all []Answered[Out], missing []string) {
	said, missing := inquiry[In, Out]{what: string(m)}.askAll(ctx, h, by, in)
	for _, a := range said {
		all = append(all, Answered[Out]{a.hub, a.out})
	}
	return all, missing
}

// matter answers an inquiry of a dialect; ok is false for one that is none.
func (h *Hub) matter(ctx context.Context, q Inquiry) (answer json.RawMessage, ok bool, err error) {
	h.mu.Lock()
	known := h.visits.matters[q.What]
	h.mu.Unlock()
	if known == nil {
		return nil, false, nil
	}
	answer, err = known.run(ctx, h, q)
	return answer, true, err
}
