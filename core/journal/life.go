package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/dragoman-hub/dragoman/core"
)

// Life is one run of a hub over its journal: it begins when the journal is opened, and ends
// when the hub stops or another one takes it over.
type Life struct {
	// Hub is the name of the hub.
	Hub string `json:"hub"`
	// Epoch rises with each life of the hub, from 1.
	Epoch uint64 `json:"epoch"`
}

// String returns the life in the form that logs show.
func (l Life) String() string { return fmt.Sprintf("%s/%d", l.Hub, l.Epoch) }

// ErrFenced reports that another hub, or another process of the same hub, has taken over the
// life that wrote: nothing more of it can be stored. What was not acknowledged before may be
// stored or not. The hub has to begin a new life.
var ErrFenced = errors.New("the journal was taken over")

// Shared is a Journal that several hubs share. Each hub has a part of its own, which only its
// present life can write to: [Journal.Append] returns an error that wraps [ErrFenced] once the
// life was taken over. The other methods of [Journal] are about the part of the own hub.
type Shared interface {
	Journal

	// Life returns the life that Open has begun.
	Life() Life

	// Deposed is closed once the journal knows that its life was taken over. [Journal.Health]
	// says by whom then.
	Deposed() <-chan struct{}

	// TakeOver ends the life of another hub, so that nothing more of it can be stored, and
	// returns what has to be done for its tasks. If a later life of that hub or another hub has
	// taken it over, it returns a *TakenError, unless the life of that other hub is over too:
	// after a takeover of that one, the same TakeOver succeeds. After an error it may have been
	// done; the caller may repeat it, also after a success. It does not need the hub.
	TakeOver(ctx context.Context, of Life) (Estate, error)

	// LifeOf returns the latest life of any hub, and the life that has taken it over, as the
	// journal knows them; zeros where there is none.
	LifeOf(ctx context.Context, hub string) (life, by Life, err error)

	// ReadOf is [Journal.Read] for a task of another hub.
	ReadOf(ctx context.Context, hub string, task core.TaskID, after uint64, limit int) ([]core.Event, error)

	// HeadsOf is [Journal.Heads] for all tasks of a hub.
	HeadsOf(ctx context.Context, hub string, yield func(Head) bool) error
}

// Estate is the part of a hub whose life was taken over. Its holder alone may write there, until
// the next life of that hub begins, which takes the estate over in its turn.
type Estate interface {
	// Life returns the life that was taken over.
	Life() Life

	// Heads is [Journal.Heads] for the tasks that have no end.
	Heads(ctx context.Context, yield func(Head) bool) error

	// Append is [Journal.Append] for the tasks of that life. It returns an error that wraps
	// ErrFenced once the holder is no longer that.
	Append(ctx context.Context, records ...Record) error
}

// TakenError reports that a life was taken over before.
type TakenError struct {
	// Of is the life, and By that which took it over.
	Of, By Life
}

// Error implements error.
func (e *TakenError) Error() string {
	return fmt.Sprintf("the life %s was taken over by %s", e.Of, e.By)
}
