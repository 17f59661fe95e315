package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/dragoman-hub/dragoman/core/timer"
)

// Health implements journal.Journal.
func (j *Journal) Health() error {
	if err := j.deposed.reason(); err != nil {
		return err
	}
	if j.server == nil {
		if status := j.conn.Status(); status != nats.CONNECTED {
			return fmt.Errorf("the connection to NATS at %q is %s: once it is back, what waits is recorded without a restart", j.address, status)
		}
		return j.majority.reason()
	}
	if err := j.home.check(); err != nil {
		return err
	}
	return cmp.Or(j.failure.reason(), j.majority.reason())
}

// send sends messages to a stream and returns the place of the last one once all are
// stored, or why they are not. Only the last message asks for an acknowledgement: a stream
// stores the messages of a connection in order, and each only if those before it were stored.
func (j *Journal) send(ctx context.Context, name string, msgs ...*nats.Msg) (place uint64, err error) {
	j.reopening.RLock()
	defer j.reopening.RUnlock()
	if err := cmp.Or(j.home.checkStream(name), j.failure.reason()); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if j.alone() {
		defer time.AfterFunc(slowAck, func() { j.watchStore(ctx, name, cancel) }).Stop()
	} else {
		defer context.AfterFunc(j.leaderTerm.current(), func() { cancel(errNewLeader) })()
		if j.unheard.any() {
			defer time.AfterFunc(lostTime, func() { cancel(errNoAnswer) }).Stop()
		}
	}
	for _, m := range msgs[:len(msgs)-1] {
		if err := j.conn.PublishMsg(m); err != nil {
			return 0, err
		}
	}
	ack, err := j.js.PublishMsg(ctx, msgs[len(msgs)-1])
	if why := context.Cause(ctx); why != nil && errors.Is(err, context.Canceled) {
		err = why
	}
	if err != nil {
		return 0, j.diagnose(name, err)
	}
	// What was written while the directory was gone is not recorded.
	return ack.Sequence, j.home.checkStream(name)
}

// lostTime is how long an acknowledgement may take while the other servers may send what is for a leader
// to one that does not hear it.
const lostTime = unheardPatience

var errNoAnswer = errors.New("no server has acknowledged it in time")

// slowAck is how long an acknowledgement may take before the server is asked about the
// health of the stream: it does not answer a message that it could not write.
const slowAck = 100 * time.Millisecond

// watchStore cancels the wait for an acknowledgement once the store of the stream has
// failed.
func (j *Journal) watchStore(ctx context.Context, stream string, cancel context.CancelCauseFunc) {
	for ctx.Err() == nil {
		if err := j.storeError(stream); err != nil {
			cancel(err)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(slowAck):
		}
	}
}

// storeError returns the error of the store of a stream that the embedded server knows of.
func (j *Journal) storeError(stream string) error {
	if health := j.server.Healthz(&server.HealthzOptions{Account: server.DEFAULT_GLOBAL_ACCOUNT, Stream: stream}); health.Error != "" {
		return errors.New(health.Error)
	}
	return nil
}

// diagnose returns why a message was not stored. A store that has failed stays so: it has
// it opened again.
func (j *Journal) diagnose(stream string, err error) error {
	if !j.alone() {
		return err // the other servers of a cluster may have stored it
	}
	cause := j.storeError(stream)
	if cause == nil {
		return err
	}
	return j.failure.report(cmp.Or(j.home.usable(), cause)) // the former says what to do
}

// trouble is why nothing can be stored; nil while it can.
type trouble struct {
	mu  sync.Mutex
	why error
}

func (t *trouble) reason() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.why
}

func (t *trouble) set(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.why = why
}

// first sets the reason if there is none, and reports whether there was none.
func (t *trouble) first(why error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.why != nil {
		return false
	}
	t.why = why
	return true
}

// failure is why the store of the embedded server takes no writes.
type failure struct {
	trouble
	reported chan struct{} // has a token once a sender has reported a failure
}

// report is called by senders. It returns the reason that was reported first: streams fail
// one after the other when a disk is full, and it is one failure.
func (f *failure) report(why error) error {
	f.first(why)
	select {
	case f.reported <- struct{}{}:
	default: // another sender has reported it
	}
	return cmp.Or(f.reason(), why)
}

// reopenPause is the time before each try to open a failed store again.
const reopenPause = 500 * time.Millisecond

// reopenAfterFailures opens the store again whenever it has failed, until the context ends.
func (j *Journal) reopenAfterFailures(ctx context.Context) {
	for {
		select {
		case <-j.failure.reported:
		case <-ctx.Done():
			return
		}
		for j.failure.reason() != nil {
			if timer.Sleep(ctx, reopenPause) != nil { // before the first try too: a store may fail again at once
				return
			}
			j.failure.set(j.reopen(ctx))
		}
	}
}

// reopen stops JetStream, which keeps its first write error, and starts it again on the
// same files. Connections and streams stay valid.
func (j *Journal) reopen(ctx context.Context) error {
	if err := j.home.usable(); err != nil {
		return err
	}
	j.mark(ctx)
	j.reopening.Lock()
	defer j.reopening.Unlock()
	if err := j.server.ShutdownJetStream(); err != nil {
		return fmt.Errorf("closing the store: %w", err)
	}
	if err := dropIndexes(filepath.Join(j.home.dir, storeDir)); err != nil {
		return err
	}
	config := j.config
	if err := j.server.EnableJetStream(&config); err != nil {
		return errors.Join(fmt.Errorf("opening the store again: %w", err), j.server.ShutdownJetStream())
	}
	for _, f := range j.fences {
		s, err := j.js.Stream(ctx, f.stream)
		if err == nil {
			err = f.opened(ctx, s)
		}
		if err != nil {
			return fmt.Errorf("opening the stream %s again: %w", f.stream, err)
		}
	}
	return nil
}
