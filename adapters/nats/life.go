package nats

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// alone reports whether only this process can reach the server.
func (j *Journal) alone() bool { return j.server != nil && !j.clustered }

// ownSuffix ends the subjects of owners.
const ownSuffix = ".own"

// Life implements journal.Shared.
func (j *Journal) Life() journal.Life { return j.life }

// Deposed implements journal.Shared.
func (j *Journal) Deposed() <-chan struct{} { return j.deposed.told }

// deposed is whether another life has taken over a stream of the hub.
type deposed struct {
	trouble
	told chan struct{} // closed with the first reason
}

func (j *Journal) depose(why error) {
	if j.deposed.first(why) {
		close(j.deposed.told)
	}
}

// HasTasks reports whether the journal has a task of this hub. One that was alone has some before it has a place
// in a cluster; the number of its life does not tell that, since a life may have begun twice where nobody
// acknowledged it.
func (j *Journal) HasTasks(ctx context.Context) (bool, error) {
	_, err := j.getFromLeader(ctx, j.tasks.stream, getRequest{Seq: 1, Next: j.tasks.prefix + ">"})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	return err == nil, err
}

// process names this process, for people.
func process() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("host %s, process %d", host, os.Getpid())
}

// begin begins the next life of the hub: it takes over its streams, that of the tasks first.
func (j *Journal) begin(ctx context.Context, hub string) error {
	for {
		epoch, from := uint64(0), uint64(0)
		for i, f := range j.fences {
			o, place, err := f.lastOwner(ctx)
			if err != nil {
				return err
			}
			f.owned, epoch = place, max(epoch, o.Life.Epoch)
			if i == 0 && place == 0 {
				epoch = max(epoch, f.place) // retention dropped the owner: no life had a greater epoch
			} else if i == 0 {
				from = o.From
			}
		}
		j.life = journal.Life{Hub: hub, Epoch: epoch + 1}
		first := j.fences[0]
		mine := j.owner()
		mine.From = from
		now, taken, err := first.take(ctx, mine)
		if err != nil {
			return err
		}
		if taken {
			break
		}
		if first.place, err = first.last(ctx); err != nil || now < first.owned {
			return errors.Join(err, fmt.Errorf("the owner of the stream %s is at %d, and was at %d", first.stream, now, first.owned))
		}
	}
	for _, f := range j.fences[1:] {
		if err := f.follow(ctx, j.owner()); err != nil {
			return err
		}
	}
	return nil
}

// owner is the present life of the hub as the owner of its streams.
func (j *Journal) owner() owner { return owner{Life: j.life, At: process()} }

// follow makes o the owner of a stream unless that has an owner of a later life.
func (f *fence) follow(ctx context.Context, o owner) error {
	for {
		now, taken, err := f.take(ctx, o)
		if taken || err != nil {
			return err
		}
		f.owned = now
		if now == 0 {
			continue
		}
		if other, err := f.ownerAt(ctx, now); err != nil || !other.precedes(o) {
			return errors.Join(err, f.lose(other))
		}
	}
}

// TakeOver implements journal.Shared. It reads and writes the stream of that hub, and needs a leader of
// it. It returns a FormatError if that hub stores in a format that this version does not read. If a third hub has taken the life over before, it also asks the leader of the stream of that one
// whether that life goes on.
func (j *Journal) TakeOver(ctx context.Context, of journal.Life) (journal.Estate, error) {
	e := &estate{j.tasksOf(of.Hub)}
	if _, err := e.info(ctx); err != nil {
		return nil, err
	}
	mine := owner{Life: of, By: j.life, At: process()}
	o, place, err := e.lastOwner(ctx)
	for {
		switch {
		case err != nil:
			return nil, err
		case o.Life.Epoch > of.Epoch:
			return nil, &journal.TakenError{Of: of, By: o.Life}
		case o.Life == of && o.By.Hub != "" && o.By != j.life:
			if lives, err := j.lives(ctx, o.By); err != nil {
				return nil, err
			} else if lives {
				return nil, &journal.TakenError{Of: of, By: o.By}
			}
		}
		mine.From = o.From
		e.owned = place // also when it was this life: what it has stored since comes before the new owner
		var taken bool
		if place, taken, err = e.take(ctx, mine); err != nil {
			return nil, err
		}
		if taken {
			return e, nil
		}
		if o = (owner{}); place > 0 {
			o, err = e.ownerAt(ctx, place)
		}
	}
}

// lives reports whether a life still owns the stream of its hub.
func (j *Journal) lives(ctx context.Context, life journal.Life) (bool, error) {
	o, place, err := j.tasksOf(life.Hub).lastOwner(ctx)
	return place == 0 || o.Life == life && o.By.Hub == "", err
}

// LifeOf implements journal.Shared.
func (j *Journal) LifeOf(ctx context.Context, hub string) (life, by journal.Life, err error) {
	err = j.Insist(ctx, func(ctx context.Context) error {
		o, _, err := j.tasksOf(hub).lastOwner(ctx)
		life, by = o.Life, o.By
		var refused *jetstream.APIError
		if errors.As(err, &refused) && refused.ErrorCode == jetstream.JSErrCodeStreamNotFound {
			return nil // that hub never began a life
		}
		return err
	})
	return life, by, err
}

// ReadOf implements journal.Shared.
func (j *Journal) ReadOf(ctx context.Context, hub string, task core.TaskID, after uint64, limit int) ([]core.Event, error) {
	if hub == j.life.Hub {
		return j.Read(ctx, task, after, limit)
	}
	return j.tasksOf(hub).read(ctx, task, after, limit)
}

// HeadsOf implements journal.Shared.
func (j *Journal) HeadsOf(ctx context.Context, hub string, yield func(journal.Head) bool) error {
	if hub == j.life.Hub {
		return j.tasks.heads(ctx, 1, 0, math.MaxInt, yield)
	}
	h := j.tasksOf(hub)
	last, err := h.last(ctx)
	if err != nil {
		return fmt.Errorf("reading the journal of hub %s: %w", hub, err)
	}
	if last == 0 {
		return nil
	}
	return h.heads(ctx, 1, last, math.MaxInt, yield)
}

// estate is a journal.Estate.
type estate struct{ *hubTasks }

// Life implements journal.Estate.
func (e *estate) Life() journal.Life { return e.owner.Life }

// Heads implements journal.Estate.
func (e *estate) Heads(ctx context.Context, yield func(journal.Head) bool) error {
	e.mu.Lock()
	from, last := max(e.owner.From, 1), e.owned // nothing of the life that was taken over comes after it
	e.mu.Unlock()
	if from > last { // what was before it is lost
		from = 1
	}
	return e.heads(ctx, from, last, 0, func(h journal.Head) bool { return h.End != 0 || yield(h) })
}

// Append implements journal.Estate.
func (e *estate) Append(ctx context.Context, records ...journal.Record) error {
	if err := e.append(ctx, records); err != nil {
		return fmt.Errorf("writing to the journal of hub %s: %w", e.owner.Life.Hub, err)
	}
	return nil
}
