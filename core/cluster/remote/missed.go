package remote

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/rpc"
)

// A hub that takes no more news at the moment, for too much is on its way to it, misses some. It is
// told of which kind, by a word that has room and comes before the next news of the kind, and asks for
// what it has missed.

// missedPause is how long after that word the next one of the kind is.
const missedPause = time.Second

// missedNews says of which kind some news are missing.
const missedNews rpc.News[string] = "missed"

// missedNotifications are what other hubs could not be told.
type missedNotifications struct {
	mu sync.Mutex
	// told are the hubs that were told not long ago that they have missed news of a kind; true for one
	// that has missed more since. It gets nothing of the kind until it is told that.
	told map[missed]bool
}

type missed struct{ hub, what string }

var errResyncRequired = core.NewFault(core.CodeOverloaded, "it has to be told first that it has missed some")

// before returns an error for news that must not be told yet.
func (u *missedNotifications) before(m missed) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.told[m] {
		return errResyncRequired
	}
	return nil
}

// Tell implements [rpc.Peers].
func (r *Hubs) Tell(to string, t rpc.Told, again bool) (err error) {
	m := missed{to, t.What}
	if again {
		err = r.missed.before(m)
	}
	if err == nil {
		err = r.links.Tell(to, t)
	}
	if again && err != nil {
		r.Count("peer.untold")
		r.log.Warn("another hub could not be told", "hub", to, "news", t.What, "error", err)
		if core.AsFault(err).Code != core.CodeUnreachable { // else it is gone, or was told that
			r.missed.notify(r, m)
		}
	}
	return err
}

// notify tells a hub that it has missed something, now or after the pause.
func (u *missedNotifications) notify(r *Hubs, m missed) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, pauses := u.told[m]; pauses {
		u.told[m] = true
		return
	}
	if u.told == nil {
		u.told = map[missed]bool{}
	}
	err := missedNews.Tell(r, m.hub, m.what)
	u.told[m] = err != nil && core.AsFault(err).Code != core.CodeUnreachable
	time.AfterFunc(missedPause, func() {
		u.mu.Lock()
		more := u.told[m]
		delete(u.told, m)
		u.mu.Unlock()
		if more {
			u.notify(r, m)
		}
	})
}

// hearMissed asks another hub for news of a kind of which this one has missed some.
func (r *Hubs) hearMissed(from, what string) {
	r.Lock()
	defer r.Unlock()
	if !r.view.get(from).up {
		return // it tells all when it comes
	}
	r.Count("peer.missed")
	r.node.Missed(from, what)
}

// Told hears news of another hub. It returns an error for news that cannot be read, and ignores
// those that this version does not know.
func (r *Hubs) Told(from string, t rpc.Told) error {
	known, err := r.node.Told(from, t)
	if !known {
		r.Count("peer.unknown")
	}
	return err
}

// Ask implements [rpc.Peers].
func (r *Hubs) Ask(ctx context.Context, to string, q rpc.Request) (json.RawMessage, error) {
	if q.What == hub.TasksMethod && r.view.get(to).gone {
		return r.tasksOf(ctx, to, q)
	}
	return r.links.Ask(ctx, to, q)
}

// Dial implements [rpc.Peers].
func (r *Hubs) Dial(to, service string, by core.Principal) (rpc.Conn, error) {
	return r.links.Dial(to, service, by)
}

// answer has what other hubs ask and tell answered and heard.
func (r *Hubs) answer() {
	threadMethod.Answer(r, func(_ context.Context, _ core.Principal, id core.ThreadID) ([]core.TaskID, error) {
		return r.Index.Latest(id, mostTasks), nil
	})
	turnsMethod.Answer(r, r.turnsHere)
	commandMethod.Answer(r, r.doHere)
	if r.keys != nil {
		openedMethod.Answer(r, func(_ context.Context, _ core.Principal, c claim) (core.TaskID, error) { return r.openedHere(c) })
	}
	hub.OpenedNews.Hear(r, r.opened, func(string) {
		r.joins++ // each conversation is asked for again
		r.Misses()
	})
	missedNews.Hear(r, r.hearMissed, nil)
}

// mostTasks is how many of the tasks of a thread a hub tells another one.
const mostTasks = 10_000

// doHere is commandMethod at this hub.
func (r *Hubs) doHere(ctx context.Context, by core.Principal, c core.Call) (struct{}, error) {
	t, err := r.About(ctx, c.Command)
	switch {
	case err != nil:
		return struct{}{}, err
	case t == nil || t.IsRemote():
		return struct{}{}, core.NewFault(core.CodeUnreachable, "task %s has moved to another hub: ask again in a moment", c.Command.Object())
	}
	c.Principal = by
	r.Lock()
	standIn := r.standFor(r.name)
	r.Unlock()
	return struct{}{}, standIn.Perform(c)
}
