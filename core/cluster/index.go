package cluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/dragoman-hub/dragoman/core/journal"
)

// The names in [Claims] that are about hubs.
const (
	nameHub       = "hub."       // before the name of a hub: its index
	nameIndex     = "index."     // before an index: the hub that has it
	nameForgotten = "forgotten." // before the name of a hub: the epoch up to which it is gone for good
)

// TakeIndex returns the index of the hub with that name: the one it had before, or else the
// lowest that is free. It stays that of the name for good, since it stands in the ids of tasks. The
// index 0 stands in the tasks of a hub alone: it is left to the first that brings some along.
func TakeIndex(ctx context.Context, claims Claims, name string, wasAlone bool) (int, error) {
	if err := CheckName(name); err != nil {
		return 0, err
	}
	had, err := claims.Holder(ctx, nameHub+name)
	if err != nil {
		return 0, err
	}
	first := 1
	if wasAlone || had == "0" {
		first = 0
	}
	for i := first; i <= MaxIndex; i++ {
		// First the name, then the index: whatever ends between the two is found again.
		had, err := claims.Claim(ctx, nameHub+name, strconv.Itoa(i), func(holder string) bool {
			n, err := strconv.Atoi(holder)
			return err != nil || n < i // it lost that one to another hub
		})
		if err != nil {
			return 0, fmt.Errorf("claiming an index for the hub %s: %w", name, err)
		}
		if i, err = strconv.Atoi(had); err != nil || i < 0 || i > MaxIndex {
			return 0, fmt.Errorf("the hub %s has the index %q", name, had)
		}
		holder, err := claims.Claim(ctx, nameIndex+strconv.Itoa(i), name, func(string) bool { return false })
		if err != nil {
			return 0, fmt.Errorf("claiming the index %d for the hub %s: %w", i, name, err)
		}
		if holder == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("all %d indexes belong to other hubs: start this one with one of their names (--hub-name)", MaxIndex+1-first)
}

// Known returns the hubs that have an index, but for those without a life, for [Settings.Known].
// lifeOf tells of their lives what the journal knows: see [journal.Shared]. With an error Known
// returns the other hubs.
func Known(ctx context.Context, claims Claims, lifeOf func(ctx context.Context, hub string) (life, by journal.Life, err error)) (all []Hub, err error) {
	for i := 0; i <= MaxIndex; i++ {
		name, failed := claims.Holder(ctx, nameIndex+strconv.Itoa(i))
		switch {
		case failed != nil || name == "" && i > 0:
			return all, errors.Join(err, failed) // the lowest that is free is given away first
		case name == "":
			continue // no hub was alone
		}
		life, by, failed := lifeOf(ctx, name)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("reading of the hub %s: %w", name, failed))
		}
		if life.Epoch == 0 {
			continue
		}
		h := Hub{Name: name, Index: i, Epoch: life.Epoch}
		if by != (journal.Life{}) {
			h.TakenBy = &by
		}
		until, failed := claims.Holder(ctx, nameForgotten+name)
		if failed != nil {
			err = errors.Join(err, failed)
		}
		epoch, _ := strconv.ParseUint(until, 10, 64)
		h.Forgotten = epoch >= h.Epoch
		all = append(all, h)
	}
	return all, err
}
