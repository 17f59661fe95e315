package nats

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// Options say where a Journal is kept.
type Options struct {
	// Dir is the directory of the embedded server; it is made when missing, and
	// one process at a time may use it.
	Dir string
	// URL is the address of an external server with JetStream; "" embeds one.
	URL string
	// Name tells several hubs on one server apart: letters, digits, dashes and
	// underscores; "" is "dragoman".
	Name string
	// Sync is the policy of the embedded server; "" is SyncInterval.
	Sync Sync
	// Keep says how much is kept.
	Keep journal.Retention
	// KeepUsage says how much is kept of what was spent.
	KeepUsage usage.Retention
	// Logs are the logs beside the journal, by names of letters, and how much each
	// keeps.
	Logs map[string]journal.Retention
}

// Journal is a journal.Journal on JetStream.
type Journal struct {
	server *server.Server // nil when the server is external
	conn   *nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream
	usage  *Usage
	logs   map[string]*Log
	prefix string
	part   int // the most bytes of one message

	mu     sync.Mutex // held while messages are made and sent
	room   []byte     // for the data of the next
	stored uint64     // the place of the last message that was stored
}

// mostRoom is how much room for data the journal keeps.
const mostRoom = 1 << 20

var _ journal.Journal = (*Journal)(nil)

// Open starts the embedded server or reaches the external one, and makes the
// streams when they are missing. Close lets go of it.
func Open(ctx context.Context, o Options) (*Journal, error) {
	name := cmp.Or(o.Name, "dragoman")
	if strings.ContainsFunc(name, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '-' && r != '_'
	}) {
		return nil, fmt.Errorf("the name %q of the journal may have letters, digits, dashes and underscores only", name)
	}
	keep, keepUsage := o.Keep.Or(), o.KeepUsage.Or()
	j := &Journal{prefix: name + ".task.", logs: map[string]*Log{}}
	room := keep.Bytes + keepUsage.Bytes
	for _, l := range o.Logs {
		room += l.Or().Bytes
	}
	var err error
	if o.URL == "" {
		if j.server, err = embed(o.Dir, o.Sync, room); err != nil {
			return nil, err
		}
	}
	if err = j.open(ctx, o.URL, name, keep); err == nil {
		j.usage, err = openUsage(ctx, j.js, name, keepUsage)
	}
	for log, keep := range o.Logs {
		if err == nil {
			j.logs[log], err = openLog(ctx, j.js, name, log, keep.Or())
		}
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

func (j *Journal) open(ctx context.Context, url, name string, keep journal.Retention) (err error) {
	if j.conn, err = connect(ctx, j.server, url); err != nil {
		return err
	}
	const overhead = 4 << 10 // headers, subject
	j.part = int(min(j.conn.MaxPayload(), payload)) - overhead
	if j.js, err = jetstream.New(j.conn); err != nil {
		return err
	}
	j.stream, err = j.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: name + "-tasks", Description: "the tasks of a Dragoman hub, a subject each",
		Subjects: []string{j.prefix + ">"}, Storage: jetstream.FileStorage, Discard: jetstream.DiscardOld,
		MaxAge: keep.Age, MaxBytes: keep.Bytes, AllowDirect: true,
	})
	if err != nil {
		return fmt.Errorf("making the stream of the journal: %w", err)
	}
	info, err := j.stream.Info(ctx)
	if err != nil {
		return fmt.Errorf("reading the stream of the journal: %w", err)
	}
	j.stored = info.State.LastSeq
	return nil
}

// Append implements journal.Journal. Only the last message asks to be
// acknowledged: a stream stores what one connection sends in order, and the place
// that the acknowledgement tells proves that every message before it was stored.
func (j *Journal) Append(ctx context.Context, records ...journal.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var msgs []*nats.Msg
	room := j.room[:0]
	for run := range runs(records) {
		var err error
		if msgs, room, err = encode(msgs, room, j.prefix+string(run[0].Task), run, j.part); err != nil {
			return err
		}
	}
	if len(msgs) == 0 {
		return nil
	}
	if cap(room) <= mostRoom {
		j.room = room // the connection copies what it publishes
	}
	for _, m := range msgs[:len(msgs)-1] {
		if err := j.conn.PublishMsg(m); err != nil {
			return fmt.Errorf("writing to the journal: %w", err)
		}
	}
	ack, err := j.js.PublishMsg(ctx, msgs[len(msgs)-1])
	if err != nil {
		return fmt.Errorf("writing to the journal: %w", err)
	}
	want := j.stored + uint64(len(msgs))
	j.stored = ack.Sequence
	if ack.Sequence != want {
		return fmt.Errorf("writing to the journal: it is at %d after %d messages, want %d: some were not stored", ack.Sequence, len(msgs), want)
	}
	return nil
}

// Read implements journal.Journal.
func (j *Journal) Read(ctx context.Context, task core.TaskID, after uint64, limit int) ([]core.Event, error) {
	if !plain(task) {
		return nil, journal.ErrUnknown
	}
	subject := jetstream.WithGetMsgSubject(j.prefix + string(task))
	var out []core.Event
	var parts assembly
	seen, known := uint64(0), false
read:
	for at := uint64(1); ; {
		m, err := j.stream.GetMsg(ctx, at, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading task %s from the journal: %w", task, err)
		}
		at = m.Sequence + 1
		data, whole := parts.add(m.Header, m.Data)
		if !whole {
			continue
		}
		events, err := decode(data)
		if err != nil {
			return nil, unreadable(m.Sequence, task, err)
		}
		for _, e := range events {
			known = true
			rest, ok := e.After(max(after, seen)) // what was appended again is known
			seen = max(seen, e.End())
			if ok {
				if out = append(out, rest); len(out) == limit {
					break read
				}
			}
		}
	}
	switch {
	case !known:
		return nil, journal.ErrUnknown
	case len(out) > 0 && out[0].Seq > after+1:
		return out, &journal.GapError{Task: task, From: after + 1, To: out[0].Seq - 1}
	}
	return out, nil
}

// unreadable says of a message that it is none of ours.
func unreadable(sequence uint64, task core.TaskID, err error) error {
	return fmt.Errorf("message %d of the journal, of task %s, cannot be read (is it of another version, or of another program?): %w", sequence, task, err)
}

// Heads implements journal.Journal.
func (j *Journal) Heads(ctx context.Context, yield func(journal.Head) bool) error {
	info, err := j.stream.Info(ctx, jetstream.WithSubjectFilter(j.prefix+">"))
	if err != nil {
		return fmt.Errorf("listing the journal: %w", err)
	}
	subjects := make([]string, 0, len(info.State.Subjects))
	for s := range info.State.Subjects {
		subjects = append(subjects, s)
	}
	slices.Sort(subjects)
	for _, s := range subjects {
		task := core.TaskID(strings.TrimPrefix(s, j.prefix))
		last, err := j.last(ctx, s, task)
		switch {
		case errors.Is(err, journal.ErrUnknown) || errors.Is(err, jetstream.ErrMsgNotFound):
			continue // it fell to retention meanwhile
		case err != nil:
			return fmt.Errorf("reading the end of task %s: %w", task, err)
		}
		if !yield(journal.Head{Task: task, Last: last}) {
			return nil
		}
	}
	return nil
}

func (j *Journal) last(ctx context.Context, subject string, task core.TaskID) (core.Event, error) {
	m, err := j.stream.GetLastMsgForSubject(ctx, subject)
	if err != nil {
		return core.Event{}, err
	}
	if m.Header.Get(partsHeader) == "" {
		events, err := decode(m.Data[bytes.LastIndexByte(m.Data, '\n')+1:])
		if err != nil {
			return core.Event{}, unreadable(m.Sequence, task, err)
		}
		return events[0], nil
	}
	events, err := j.Read(ctx, task, 0, 0) // a long event, or one that was cut off
	if len(events) == 0 {
		return core.Event{}, cmp.Or(err, journal.ErrUnknown)
	}
	return events[len(events)-1], nil
}

// Close implements journal.Journal. The embedded server is stopped and has
// written everything to its files when it returns.
func (j *Journal) Close() error {
	if j.conn != nil {
		j.conn.Close()
	}
	if j.server != nil {
		j.server.Shutdown()
		j.server.WaitForShutdown()
	}
	return nil
}
