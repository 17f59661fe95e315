package nats

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/timer"
)

// hole is a range of places in a stream without a message.
type hole struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// replay yields the messages of the stream from where r says to the place last, oldest first, but for those of
// owners, and an error, which is the last that it yields. 0 is the present end. It adds the places to holes that
// are missing between the first message and the last place, though retention has not dropped them; the first
// replay of the whole stream says of them what was not said before.
func (f *fence) replay(ctx context.Context, r getRequest, last uint64, holes *[]hole) iter.Seq2[message, error] {
	return func(yield func(message, error) bool) {
		if last == 0 {
			now, err := f.awaitState(ctx)
			if err != nil {
				yield(message{}, err)
				return
			}
			last = now.LastSeq
		}
		if holes == nil {
			holes = new([]hole)
		}
		first, next, looks := uint64(0), uint64(0), r.Seq <= 1 && r.At.IsZero()
		r.Next, r.Batch, r.Bytes = everything, batchMessages, batchBytes
		for m, err := range f.messages(ctx, r, last) {
			if err != nil {
				yield(m, err)
				return
			}
			if next == 0 {
				first = m.place
			} else if m.place > next {
				*holes = append(*holes, hole{next, m.place - 1})
			}
			next = m.place + 1
			switch {
			case m.subject == f.own:
			case !f.isWhole(m):
				*holes = append(*holes, hole{m.place, m.place})
			case !yield(m, nil):
				return
			}
		}
		if next > 0 && next <= last {
			*holes = append(*holes, hole{next, last})
		}
		if err := f.replayed(ctx, looks, first, holes); err != nil {
			yield(message{}, err)
		}
	}
}

// isWhole reports whether a message is one of the stream. A server checks all of a message but where its subject
// ends and its data begins.
func (f *fence) isWhole(m message) bool {
	if f.subject != "" {
		return m.subject == f.subject
	}
	return m.isOfTasks()
}

// isOfTasks reports whether a message has events of tasks, or is a part of one that has.
func (m message) isOfTasks() bool {
	return m.isPart() || m.header.Get(partHeader) == "" && bytes.HasPrefix(m.data, []byte(taskLine))
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

// messages yields the messages that r asks for, up to the place last, and an error, which is the last that it
// yields. It asks any replica, and another one if that does not answer; what a replica does not have, it asks the
// leader for. It yields an unreachable Fault, which it logs, if there is none, or none answers for answerTimeout:
// busyStart where all from a place on is read, as at a start or to take a hub over.
func (f *fence) messages(ctx context.Context, r getRequest, last uint64) iter.Seq2[message, error] {
	return func(yield func(message, error) bool) {
		wait, heard, missed := f.j.replicaSilence(), time.Now(), false
		told, all, silent := heard, r.Next == everything && r.At.IsZero(), false
		for more := true; more && r.Seq <= last; {
			next, some, err := f.batch(ctx, r, last, wait, yield)
			silent = hasBeenSilent(silent, err)
			switch {
			case errors.Is(err, jetstream.ErrMsgNotFound) && f.j.replicas == 1:
				// A server that finds a file of the stream empty says that once, and then what is behind it.
				some, err, missed = !missed && r.Next == everything, timer.Sleep(ctx, replicaPause), true
			case errors.Is(err, jetstream.ErrMsgNotFound):
				some, err = f.has(ctx, r.from(next), last)
			case f.mayAnswer(err) && time.Since(heard) < patience(all && silent):
				told = f.stillUnheard(told, heard, err)
				some, err, wait = true, timer.Sleep(ctx, replicaPause), f.j.longer(wait)
			case errors.Is(err, errSilent) || errors.Is(err, nats.ErrNoResponders):
				f.unheard(heard, err)
				err = core.NewFault(core.CodeUnreachable, "the journal does not answer: try again in a while").Because(err)
			}
			if err != nil {
				yield(message{}, fmt.Errorf("reading the stream %s: %w", f.stream, err))
				return
			}
			if next > r.Seq {
				r.At = time.Time{}
				wait, heard, missed = f.j.replicaSilence(), time.Now(), false
				told, silent = heard, false
			}
			r.Seq, r.Batch, more = next, min(batchGrowth*r.Batch, batchMessages), some
		}
	}
}

// mayAnswer reports whether a request failed with err to which another replica may answer, or the same one in a while.
func (f *fence) mayAnswer(err error) bool {
	return errors.Is(err, errSilent) || f.j.clustered && errors.Is(err, nats.ErrNoResponders)
}

// busyStart is how long a server may be silent to one who reads all: it may be occupied for that long with streams
// that it opens itself. The bound is there since a store that has to be opened again waits for its readers.
const busyStart = time.Minute

// hasBeenSilent reports whether a server was silent, before or now.
func hasBeenSilent(before bool, err error) bool { return before || errors.Is(err, errSilent) }

// patience returns how long an answer is waited for: longer by one who reads all, from a server that has been silent.
func patience(busy bool) time.Duration {
	if busy {
		return busyStart
	}
	return answerTimeout
}

// stillUnheard says once for each answerTimeout that no server has answered since a time, and returns when it was told.
func (f *fence) stillUnheard(told, since time.Time, err error) time.Time {
	if time.Since(told) < answerTimeout {
		return told
	}
	f.unheard(since, err)
	return time.Now()
}

// unheard says that no server has answered since a time.
func (f *fence) unheard(since time.Time, err error) {
	f.j.log.Warn("the journal cannot be read for now", "stream", f.stream, "waited", time.Since(since).Round(time.Millisecond).String(), "error", err)
}

// errSilent is returned for a replica that does not answer: it may have died.
var errSilent = errors.New("the NATS server does not answer")

// batch yields the messages that r asks for, up to the place last. It asks any replica, and returns where to go
// on and whether there may be more. It returns jetstream.ErrMsgNotFound if the replica has none, and errSilent if
// none comes for the time wait.
func (f *fence) batch(ctx context.Context, r getRequest, last uint64, wait time.Duration, yield func(message, error) bool) (next uint64, more bool, err error) {
	next = r.Seq
	ask, err := json.Marshal(r)
	if err != nil {
		return next, false, err
	}
	answers, inbox := make(chan *nats.Msg, r.Batch+1), nats.NewInbox() // and what says that it was all
	s, err := f.j.conn.ChanSubscribe(inbox, answers)
	if err != nil {
		return next, false, err
	}
	defer s.Unsubscribe() //nolint:errcheck // the connection was closed then
	if err := f.j.conn.PublishRequest(directGet+f.stream, inbox, ask); err != nil {
		return next, false, err
	}
	for before := uint64(0); next <= last; {
		answer, err := awaitAnswer(ctx, answers, wait)
		if err != nil {
			return next, false, err
		}
		if answer.Header.Get("Status") == "204" {
			return next, true, nil
		}
		m, err := messageOf(answer)
		if errors.Is(err, errTorn) {
			next, err = f.behindTorn(ctx, r.from(next), last)
			return next, true, err
		}
		if err != nil {
			return next, false, err
		}
		pending := answer.Header.Get(numPendingHeader)
		if sent := answer.Header.Get(lastSentHeader); sent != strconv.FormatUint(before, 10) && pending != "" {
			return next, true, nil // one was lost on the way
		}
		if m.place > last || !yield(m, nil) {
			return next, false, nil
		}
		before, next = m.place, m.place+1
		if err := f.behind(pending); err != nil || pending == "" { // servers before 2.11 send one message
			return next, true, err
		}
	}
	return next, false, nil
}

// behind returns jetstream.ErrMsgNotFound, as the next ask would, if a replica says that it has no messages behind
// one: pending is their number.
func (f *fence) behind(pending string) error {
	if pending == "0" && f.j.replicas > 1 {
		return jetstream.ErrMsgNotFound
	}
	return nil
}

// behindTorn returns where to go on behind a message that has no place in the answer to r, and is missing.
func (f *fence) behindTorn(ctx context.Context, r getRequest, last uint64) (next uint64, err error) {
	if r.At.IsZero() {
		r.Seq = max(r.Seq, 1)
	}
	m, err := f.j.getFromLeader(ctx, f.stream, r)
	switch {
	case m.place > 0:
		return m.place + 1, nil
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return last + 1, nil
	}
	return r.Seq, err
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

// has reports whether the leader of the stream has a message that r asks for, up to the place last, of which a
// replica knew nothing. It waits a moment then, for the replica.
func (f *fence) has(ctx context.Context, r getRequest, last uint64) (bool, error) {
	m, err := f.j.getFromLeader(ctx, f.stream, r)
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && m.place > last {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = timer.Sleep(ctx, replicaPause)
	return err == nil, err
}
