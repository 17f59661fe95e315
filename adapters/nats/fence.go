package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/timer"
)

// fence is a stream that one life at a time writes to. Each message is stored only if the
// stream is where its writer left it; where nobody else can reach the server, its answer is
// checked instead, which costs less. Whoever takes the stream over writes its name there: the
// stream is elsewhere then, and the former writer can store nothing more, whatever it believes.
type fence struct {
	j      *Journal
	stream string // its name
	own    string // the subject of owners in the stream
	// subject is that of all other messages; "" for those of tasks, which have many.
	subject string
	owner   owner // who writes here
	keep    journal.Retention
	open    *openTasks // those of the own hub in a cluster; else nil

	mu      sync.Mutex // held while messages are made and sent; before Journal.reopening
	place   uint64     // the last message that is known to be stored
	unsure  bool       // more may be stored: the last message was not acknowledged
	owned   uint64     // the place of the owner; 0 if retention dropped it
	renewed time.Time  // when the owner was written last
	written int64      // how many bytes were written since
}

// owner is a message that says who writes to a stream from its place on.
type owner struct {
	// Life is that of the hub to which the stream belongs.
	Life journal.Life `json:"life"`
	// By is the life that took Life over, if any.
	By journal.Life `json:"by,omitzero"`
	// At names the process, for people.
	At string `json:"at"`
	// From is a place before which no task is open: who takes the stream over reads it from there on.
	From uint64 `json:"from,omitempty"`
}

// is reports whether two owners are the same.
func (o owner) is(other owner) bool {
	o.From = other.From
	return o == other
}

// String returns the owner as error messages name it.
func (o owner) String() string {
	who := o.Life
	if o.By.Hub != "" {
		who = o.By
	}
	if who.Hub == "" {
		return "unknown"
	}
	return fmt.Sprintf("%s (%s)", who, o.At)
}

// precedes reports whether o owned a stream before other.
func (o owner) precedes(other owner) bool {
	return o.Life.Epoch < other.Life.Epoch || o.Life.Epoch == other.Life.Epoch && o.By.Hub == "" && other.By.Hub != ""
}

// fencedError reports who took over a stream of the own hub, or of the estate of another.
type fencedError struct {
	of, by string
	estate bool
}

// Error implements error.
func (e *fencedError) Error() string {
	if e.estate {
		return fmt.Sprintf("another hub has taken over the journal of hub %s in its turn (%s)", e.of, e.by)
	}
	return fmt.Sprintf("another hub has taken over the journal of hub %s (%s): this hub can record nothing more", e.of, e.by)
}

// Unwrap returns journal.ErrFenced.
func (e *fencedError) Unwrap() error { return journal.ErrFenced }

// renewal is how much of the retention passes, in time or bytes, until the owner is written
// again: others look for it.
const renewal = 4

// append stores messages after those that the life has written before, all or the first of
// them. It returns an error that wraps journal.ErrFenced if the life is not the owner any more.
// Callers hold mu.
func (f *fence) append(ctx context.Context, msgs ...*nats.Msg) error {
	if err := f.j.deposed.reason(); err != nil {
		return err
	}
	for again := false; ; again = true {
		if f.isDue() {
			if err := f.renew(ctx); err != nil {
				return err
			}
		}
		for i, m := range msgs {
			f.written += int64(len(m.Data))
			if f.j.alone() {
				continue
			}
			if m.Header == nil {
				m.Header = nats.Header{}
			}
			m.Header[jetstream.ExpectedLastSeqHeader] = []string{strconv.FormatUint(f.place+uint64(i), 10)}
		}
		f.unsure = true
		place, err := f.j.send(ctx, f.stream, msgs...)
		if err == nil {
			want := f.place + uint64(len(msgs))
			if f.place, f.unsure = place, false; place < want {
				return fmt.Errorf("the stream %s is at %d after %d messages, want %d: some were not stored", f.stream, place, len(msgs), want)
			}
			return nil
		}
		// The life may be the owner still: a program without a fence may have written.
		if _, moved := movedTo(err); !moved || again {
			return err
		}
	}
}

// appendJoined stores so many records in as few messages as their size allows. encode appends one to the data of a
// message.
func (f *fence) appendJoined(ctx context.Context, records int, encode func(data []byte, i int) ([]byte, error)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var data []byte
	for i := range records {
		var err error
		if data, err = encode(data, i); err != nil {
			return err
		}
		if len(data) < runBytes && i < records-1 {
			continue
		}
		if err := f.append(ctx, &nats.Msg{Subject: f.subject, Data: data}); err != nil {
			return err
		}
		data = nil
	}
	return nil
}

// isDue reports whether the owner is to be written again before the next message. Callers hold mu.
func (f *fence) isDue() bool {
	return f.unsure || time.Since(f.renewed) > f.keep.Age/renewal || f.written > f.keep.Bytes/renewal || f.open != nil && f.written > f.j.ownerBytes
}

// renew writes the owner again, and so learns where the stream is. Callers hold mu.
func (f *fence) renew(ctx context.Context) error {
	if f.open != nil {
		f.owner.From = f.open.first(f.place+1, f.owner.From)
	}
	condition, at := jetstream.ExpectedLastSubjSeqHeader, f.owned
	if !f.unsure {
		condition, at = jetstream.ExpectedLastSeqHeader, f.place
	}
	dropped := false
	for {
		f.unsure = true
		place, err := f.write(ctx, condition, at)
		if err == nil {
			return f.note(place)
		}
		now, moved := movedTo(err)
		switch {
		case !moved:
			return err
		case condition == jetstream.ExpectedLastSeqHeader && dropped:
			return f.lose(owner{})
		case condition == jetstream.ExpectedLastSeqHeader:
			condition, at = jetstream.ExpectedLastSubjSeqHeader, f.owned
			continue
		case now == 0:
			// Retention dropped the owner, and nobody wrote since if the stream did not move.
			condition, at, dropped = jetstream.ExpectedLastSeqHeader, f.place, true
			continue
		}
		o, err := f.ownerAt(ctx, now)
		if err != nil {
			return err
		}
		if !o.is(f.owner) && !o.precedes(f.owner) {
			return f.lose(o)
		}
		f.owned, at = now, now // its acknowledgement was lost, or the store lost what came later
	}
}

// note notes that the owner is stored, at the end of the stream. Callers hold mu.
func (f *fence) note(place uint64) error {
	before := f.place
	f.owned, f.place, f.unsure, f.renewed, f.written = place, place, false, time.Now(), 0
	if place <= before {
		if f.open != nil { // ends may be lost, and last events
			f.open.whole, f.owner.From = false, 1
		}
		return fmt.Errorf("the stream %s is at %d, and was at %d: some of what was stored is lost", f.stream, place, before)
	}
	return nil
}

// take makes o the owner, unless somebody has become that since owned was read: then it
// returns false, and the place of the present owner.
func (f *fence) take(ctx context.Context, o owner) (now uint64, taken bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.owner = o
	place, err := f.write(ctx, jetstream.ExpectedLastSubjSeqHeader, f.owned)
	if now, moved := movedTo(err); moved {
		return now, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("taking over the stream %s: %w", f.stream, err)
	}
	f.place = 0
	return place, true, f.note(place)
}

// busyTime is how long the owner is written again while another one is on its way.
const busyTime = time.Second

// write writes the owner, on a condition, and returns its place.
func (f *fence) write(ctx context.Context, condition string, at uint64) (place uint64, err error) {
	data, err := json.Marshal(f.owner)
	if err != nil {
		return 0, err
	}
	for begin := time.Now(); ; {
		place, err = f.j.send(ctx, f.stream, &nats.Msg{Subject: f.own, Data: data, Header: nats.Header{condition: {strconv.FormatUint(at, 10)}}})
		var refused *jetstream.APIError
		busy := errors.As(err, &refused) && refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant
		if !busy || time.Since(begin) > busyTime {
			return place, err
		}
		if err := timer.Sleep(ctx, replicaPause); err != nil {
			return 0, err
		}
	}
}

// lose notes who took the stream over, for all streams of the hub, and returns the error.
func (f *fence) lose(to owner) error {
	err := &fencedError{of: f.owner.Life.Hub, by: to.String(), estate: f.owner.By.Hub != ""}
	if !err.estate {
		f.j.depose(err)
	}
	return err
}

// last returns the place of the last message of the stream, as its leader knows it.
func (f *fence) last(ctx context.Context) (uint64, error) {
	state, err := f.state(ctx)
	return state.LastSeq, err
}

// awaitState is state, and waits for a leader of the stream.
func (f *fence) awaitState(ctx context.Context) (state jetstream.StreamState, err error) {
	err = f.j.Insist(ctx, func(ctx context.Context) (err error) {
		state, err = f.state(ctx)
		return err
	})
	return state, err
}

// state returns how far the stream is, as its leader knows it.
func (f *fence) state(ctx context.Context) (jetstream.StreamState, error) {
	info, err := f.info(ctx)
	if err != nil {
		return jetstream.StreamState{}, err
	}
	return info.State, nil
}

// info returns what the leader of the stream says of it, or a FormatError if this version does not read it.
func (f *fence) info(ctx context.Context) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	s, err := retry(ctx, f.j, f.j.silence(), func(ctx context.Context) (jetstream.Stream, error) {
		s, err := f.j.js.Stream(ctx, f.stream)
		return s, f.j.made(f.stream, err)
	})
	if err != nil {
		return nil, err
	}
	info := s.CachedInfo()
	_, err = readable(f.stream, info.Config.Metadata, f.j.version)
	return info, err
}

// lastOwner returns the present owner and its place; zeros if there is none.
func (f *fence) lastOwner(ctx context.Context) (o owner, place uint64, err error) {
	o, place, err = f.readOwner(ctx, getRequest{Last: f.own})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return owner{}, 0, nil
	}
	return o, place, err
}

// ownerAt returns the owner that is stored at a place.
func (f *fence) ownerAt(ctx context.Context, place uint64) (o owner, err error) {
	o, _, err = f.readOwner(ctx, getRequest{Seq: place})
	return o, err
}

func (f *fence) readOwner(ctx context.Context, r getRequest) (o owner, place uint64, err error) {
	m, err := f.j.getFromLeader(ctx, f.stream, r)
	if err == nil {
		err = json.Unmarshal(m.data, &o)
	}
	if err != nil {
		return o, 0, fmt.Errorf("reading who owns the stream %s: %w", f.stream, err)
	}
	return o, m.place, nil
}

// replicaPause is the time until a replica that lags behind is asked again.
const replicaPause = 5 * time.Millisecond

// movedTo returns where the stream, or its owner, is instead of where a message expected it.
func movedTo(err error) (place uint64, moved bool) {
	var refused *jetstream.APIError
	if !errors.As(err, &refused) || refused.ErrorCode != jetstream.JSErrCodeStreamWrongLastSequence {
		return 0, false
	}
	_, err = fmt.Sscanf(refused.Description, "wrong last sequence: %d", &place)
	return place, err == nil
}
