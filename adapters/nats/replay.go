package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/timer"
)

// replay calls each for every message that the stream has now, from a place on and oldest
// first, until it returns false. what names the stream in errors.
func (f *fence) replay(ctx context.Context, from uint64, what string, each func(message) (more bool, err error)) error {
	now, err := f.awaitState(ctx)
	if err != nil {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	return f.replayTo(ctx, from, now.LastSeq, what, each)
}

// replayTo is replay to the place last. It reads the files of the embedded server directly,
// which takes a tenth of the time.
func (f *fence) replayTo(ctx context.Context, next, last uint64, what string, each func(message) (more bool, err error)) error {
	checked := func(m message) (bool, error) {
		m.owner = m.subject == f.own
		more, err := each(m)
		if err != nil {
			err = fmt.Errorf("message %d of %s cannot be read (is it of another version, or of another program?): %w", m.place, what, err)
		}
		return more, err
	}
	if f.j.dir != "" {
		var more bool
		var err error
		if next, more, err = replayFiles(filepath.Join(f.j.dir, f.stream), next, last, checked); err != nil || !more {
			return err
		}
	}
	if err := f.batches(ctx, getRequest{Seq: next, Next: everything, Batch: batchMessages, Bytes: batchBytes}, last, checked); err != nil {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	return nil
}

// The size of a batch of messages. What a connection has not read yet is bounded by the bytes.
const (
	batchMessages = 4096
	batchBytes    = 4 << 20
)

// everything is the subject that matches all messages.
const everything = ">"

// batchGrowth is how many times greater each next batch is, up to batchMessages.
const batchGrowth = 4

// batches calls each for the messages that r asks for, up to the place last, until it returns false. It
// asks any replica, and another one if that does not answer; what a replica does not have, it asks the
// leader for. It returns an unreachable Fault, which it logs, if none answers for answerTimeout, or there is none.
func (f *fence) batches(ctx context.Context, r getRequest, last uint64, each func(message) (more bool, err error)) error {
	wait, heard := f.j.replicaSilence(), time.Now()
	for more := true; more && r.Seq <= last; {
		next, some, err := f.batch(ctx, r, last, wait, each)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound) && f.j.replicas == 1:
			return nil
		case errors.Is(err, jetstream.ErrMsgNotFound):
			some, err = f.has(ctx, next, last, r.Next)
		case (errors.Is(err, errSilent) || f.j.clustered && errors.Is(err, nats.ErrNoResponders)) && time.Since(heard) < answerTimeout:
			some, err, wait = true, timer.Sleep(ctx, replicaPause), f.j.longer(wait)
		case errors.Is(err, errSilent) || errors.Is(err, nats.ErrNoResponders):
			f.j.log.Warn("the journal cannot be read for now", "stream", f.stream, "waited", time.Since(heard).Round(time.Millisecond).String(), "error", err)
			return core.NewFault(core.CodeUnreachable, "the journal does not answer: try again in a while").Because(err)
		}
		if err != nil {
			return err
		}
		if next > r.Seq {
			wait, heard = f.j.replicaSilence(), time.Now()
		}
		r.Seq, r.Batch, more = next, min(batchGrowth*r.Batch, batchMessages), some
	}
	return nil
}

// errSilent is returned for a replica that does not answer: it may have died.
var errSilent = errors.New("the NATS server does not answer")

// batch calls each for the messages that r asks for, up to the place last, until it returns false. It
// asks any replica, and returns where to go on and whether there may be more. It returns
// jetstream.ErrMsgNotFound if the replica has none, and errSilent if none comes for the time wait.
func (f *fence) batch(ctx context.Context, r getRequest, last uint64, wait time.Duration, each func(message) (more bool, err error)) (next uint64, more bool, err error) {
	next = r.Seq
	answers := make(chan *nats.Msg, r.Batch+1) // and what says that it was all
	s, err := f.request(r, answers)
	if err != nil {
		return next, false, err
	}
	defer s.Unsubscribe() //nolint:errcheck // the connection was closed then
	for before := uint64(0); next <= last; {
		answer, err := awaitAnswer(ctx, answers, wait)
		if err != nil {
			return next, false, err
		}
		switch answer.Header.Get("Status") {
		case "404":
			return next, false, jetstream.ErrMsgNotFound
		case "204":
			return next, true, nil
		case "503":
			return next, false, nats.ErrNoResponders
		}
		m, err := messageOf(answer)
		if err != nil {
			return next, false, err
		}
		pending := answer.Header.Get(numPendingHeader)
		if sent := answer.Header.Get(lastSentHeader); sent != strconv.FormatUint(before, 10) && pending != "" {
			return next, true, nil // one was lost on the way
		}
		if m.place > last {
			return last + 1, false, nil
		}
		if more, err := each(m); err != nil || !more {
			return next, false, err
		}
		before, next = m.place, m.place+1
		if pending == "" {
			return next, true, nil // servers before 2.11 send one message
		}
	}
	return next, false, nil
}

// request asks for messages, which come as answers until the subscription ends.
func (f *fence) request(r getRequest, answers chan *nats.Msg) (*nats.Subscription, error) {
	ask, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	inbox := nats.NewInbox()
	s, err := f.j.conn.ChanSubscribe(inbox, answers)
	if err != nil {
		return nil, err
	}
	if err := f.j.conn.PublishRequest(directGet+f.stream, inbox, ask); err != nil {
		return nil, errors.Join(err, s.Unsubscribe())
	}
	return s, nil
}

// awaitAnswer returns the next answer. It returns errSilent if none comes for the time wait.
func awaitAnswer(ctx context.Context, answers <-chan *nats.Msg, wait time.Duration) (*nats.Msg, error) {
	select {
	case answer := <-answers:
		return answer, nil
	case <-time.After(wait):
		return nil, errSilent
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// The headers of an answer to a batch request.
const (
	numPendingHeader = "Nats-Num-Pending"
	lastSentHeader   = "Nats-Last-Sequence" // the place of the message before, in this batch
)

// has reports whether the leader of the stream has a message of a subject from next to last, of which a
// replica knew nothing. It waits a moment then, for the replica.
func (f *fence) has(ctx context.Context, next, last uint64, subject string) (bool, error) {
	m, err := f.j.getFromLeader(ctx, f.stream, getRequest{Seq: next, Next: subject})
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && m.place > last {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = timer.Sleep(ctx, replicaPause)
	return err == nil, err
}
