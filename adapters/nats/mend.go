package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Health implements journal.Journal.
func (j *Journal) Health() error {
	if j.server == nil {
		if status := j.conn.Status(); status != nats.CONNECTED {
			return fmt.Errorf("the connection to NATS at %q is %s: once it is back, what waits is recorded without a restart", j.address, status)
		}
		return nil
	}
	if err := j.home.check(); err != nil {
		return err
	}
	return j.broken.reason()
}

// send hands messages to a stream and returns the place of the last once all before
// it are stored, or the reason why not.
func (j *Journal) send(ctx context.Context, stream jetstream.Stream, msgs ...*nats.Msg) (place uint64, err error) {
	j.reopening.RLock()
	defer j.reopening.RUnlock()
	name := nameOf(stream)
	if err := cmp.Or(j.home.checkStream(name), j.broken.reason()); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if j.server != nil {
		defer time.AfterFunc(overdue, func() { j.watch(ctx, name, cancel) }).Stop()
	}
	for _, m := range msgs[:len(msgs)-1] {
		if err := j.conn.PublishMsg(m); err != nil {
			return 0, err
		}
	}
	ack, err := j.js.PublishMsg(ctx, msgs[len(msgs)-1])
	if err != nil {
		return 0, j.diagnose(name, err)
	}
	// What was written while the directory was taken away is not recorded.
	return ack.Sequence, j.home.checkStream(name)
}

func nameOf(s jetstream.Stream) string { return s.CachedInfo().Config.Name }

// overdue is how long an acknowledgement takes before the server is asked whether it
// will come: the server does not answer a message that it could not write.
const overdue = 100 * time.Millisecond

// watch ends the wait for an acknowledgement that will not come.
func (j *Journal) watch(ctx context.Context, stream string, give context.CancelCauseFunc) {
	for ctx.Err() == nil {
		if err := j.fault(stream); err != nil {
			give(err)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(overdue):
		}
	}
}

// fault is what the embedded server knows to be wrong with the store of a stream.
func (j *Journal) fault(stream string) error {
	if health := j.server.Healthz(&server.HealthzOptions{Account: server.DEFAULT_GLOBAL_ACCOUNT, Stream: stream}); health.Error != "" {
		return errors.New(health.Error)
	}
	return nil
}

// diagnose returns why a message was not stored. When the store has failed, which it
// then does for good, it has it opened again.
func (j *Journal) diagnose(stream string, err error) error {
	if j.server == nil {
		return err
	}
	fault := j.fault(stream)
	if fault == nil {
		return err
	}
	if cause := j.home.usable(); cause != nil {
		fault = cause // in plainer words
	}
	j.broken.fail(fault)
	return fault
}

// breakage is whether the store of the embedded server has failed.
type breakage struct {
	mu  sync.Mutex
	why error
	// told wakes who opens the store again.
	told chan struct{}
}

func (b *breakage) reason() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.why
}

// set says why the store does not take writes; nil that it does.
func (b *breakage) set(why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.why = why
}

// fail is what a sender calls.
func (b *breakage) fail(why error) {
	b.set(why)
	select {
	case b.told <- struct{}{}:
	default: // another sender failed before
	}
}

// mendPause is how long a store that failed is left alone between two tries.
const mendPause = 500 * time.Millisecond

// mend opens the store again whenever it has failed, until the context ends.
func (j *Journal) mend(ctx context.Context) {
	for {
		select {
		case <-j.broken.told:
		case <-ctx.Done():
			return
		}
		for j.broken.reason() != nil {
			select { // before the first try too: a store may fail again at once
			case <-time.After(mendPause):
			case <-ctx.Done():
				return
			}
			j.broken.set(j.reopen(ctx))
		}
	}
}

// reopen stops JetStream, which keeps the first error that it met when it wrote, and
// starts it again on the same files. Connections and streams stay valid.
func (j *Journal) reopen(ctx context.Context) error {
	if err := j.home.usable(); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reopening.Lock()
	defer j.reopening.Unlock()
	if err := j.server.ShutdownJetStream(); err != nil {
		return fmt.Errorf("closing the store: %w", err)
	}
	lost, err := inspect(j.home.dir, j.log) // before the server cuts what it cannot read
	if err != nil {
		return err
	}
	maps.Copy(j.lost, lost)
	config := j.config
	if err := j.server.EnableJetStream(&config); err != nil {
		return errors.Join(fmt.Errorf("opening the store again: %w", err), j.server.ShutdownJetStream())
	}
	for _, name := range j.streams {
		s, err := j.js.Stream(ctx, name)
		if err != nil {
			return fmt.Errorf("opening the stream %s again: %w", name, err)
		}
		if name == j.streams[0] {
			// More than was acknowledged may be there. Less may not: then the next
			// append says so.
			j.stored = max(j.stored, s.CachedInfo().State.LastSeq)
		}
	}
	return nil
}
