package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
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
	// Dir is the directory of the embedded server. Open makes it if it is missing; only one
	// process at a time may use it.
	Dir string
	// URL is the address of an external server with JetStream; "" embeds one.
	URL string
	// Name distinguishes hubs that share a server: letters, digits, dashes and
	// underscores; "" is "dragoman".
	Name string
	// Sync is the policy of the embedded server; "" is SyncInterval.
	Sync Sync
	// Keep says how much is kept.
	Keep journal.Retention
	// KeepUsage says how much usage is kept.
	KeepUsage usage.Retention
	// Log gets the warnings of the embedded server and reports of damage; nil drops them.
	Log *slog.Logger
	// Logs are the other logs, by names of letters, and how much each keeps.
	Logs map[string]journal.Retention
}

// Journal is a journal.Journal on JetStream.
type Journal struct {
	log    *slog.Logger
	server *server.Server // nil if the server is external
	conn   *nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream
	usage  *Usage
	logs   map[string]*Log
	// address is that of the external server, without secrets.
	address string
	prefix  string // of the subjects, before the slot
	// former is the prefix of the subjects of former versions, which had one for each
	// task, and old whether the stream has such subjects.
	former string
	old    bool
	dir    string // where the embedded server keeps its streams
	// lost has the tasks named in damaged records, and the last event of each that was
	// found there. reopening guards it.
	lost  map[core.TaskID]uint64
	part  int // the most bytes of one message
	lines int // the most bytes of long lines that Heads keeps

	// home, config and streams are those of the embedded server: its directory, what
	// JetStream runs with and the streams there are, that of the tasks first.
	home    *home
	config  server.JetStreamConfig
	streams []string
	failure failure
	// reopening is held for reading while the streams are used, and for writing while
	// their store is opened again.
	reopening sync.RWMutex
	stop      func() // ends the goroutine that opens the store again

	mu     sync.Mutex // held while messages are made and sent; before reopening
	buf    []byte     // for the data of the next append
	stored uint64     // the place of the last message that is known to be stored
	unsure bool       // more may be stored: the last append was not acknowledged
}

// maxBuf is the largest capacity of buf that is kept.
const maxBuf = 1 << 20

var _ journal.Journal = (*Journal)(nil)

// Open starts the embedded server or connects to the external one, and makes missing
// streams. Close ends it.
func Open(ctx context.Context, o Options) (*Journal, error) {
	name := cmp.Or(o.Name, "dragoman")
	if strings.ContainsFunc(name, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '-' && r != '_'
	}) {
		return nil, fmt.Errorf("the name %q of the journal may have letters, digits, dashes and underscores only", name)
	}
	keep, keepUsage := o.Keep.Or(), o.KeepUsage.Or()
	j := &Journal{
		log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), address: Redacted(o.URL), prefix: name + ".begun.", former: name + ".task.", logs: map[string]*Log{}, lines: longLines,
		failure: failure{reported: make(chan struct{}, 1)}, stop: func() {},
	}
	bytes := keep.Bytes + keepUsage.Bytes
	for _, l := range o.Logs {
		bytes += l.Or().Bytes
	}
	var err error
	if o.URL == "" {
		if j.lost, err = inspect(o.Dir, j.log); err != nil {
			return nil, err
		}
		if j.server, err = embed(o.Dir, o.Sync, bytes, j.log); err != nil {
			return nil, err
		}
		j.dir = streamsDir(o.Dir)
	}
	if err = j.open(ctx, o.URL, name, keep); err == nil {
		j.usage, err = j.openUsage(ctx, name, keepUsage)
	}
	for l, keep := range o.Logs {
		if err == nil {
			j.logs[l], err = j.openLog(ctx, name, l, keep.Or())
		}
	}
	if err == nil && j.server != nil {
		err = j.supervise(o.Dir)
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
		Name: name + "-tasks", Description: "the tasks of a Dragoman hub, a subject for those begun within 4 seconds",
		Subjects: []string{j.prefix + ">", j.former + ">"}, Storage: jetstream.FileStorage, Discard: jetstream.DiscardOld,
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
	switch _, err := j.stream.GetMsg(ctx, 1, jetstream.WithGetMsgSubject(j.former+">")); {
	case err == nil:
		j.old = true
	case !errors.Is(err, jetstream.ErrMsgNotFound):
		return fmt.Errorf("looking into the journal: %w", err)
	}
	return nil
}

// supervise watches the directory and the store of the embedded server until Close.
func (j *Journal) supervise(dir string) (err error) {
	j.streams = []string{nameOf(j.stream), nameOf(j.usage.stream)}
	for _, l := range j.logs {
		j.streams = append(j.streams, nameOf(l.stream))
	}
	j.config = *j.server.JetStreamConfig()
	if j.home, err = openHome(dir, j.config.StoreDir, j.streams...); err != nil {
		return err
	}
	// JetStream appends the last element itself.
	j.config.StoreDir = filepath.Dir(j.config.StoreDir)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { j.reopenAfterFailures(ctx) })
	j.stop = func() {
		cancel()
		running.Wait()
	}
	return nil
}

// Append implements journal.Journal. Only the last message asks for an acknowledgement: a
// stream stores the messages of a connection in order, so that the place in the
// acknowledgement proves that all messages before were stored. After an append that was not
// acknowledged every message asks for one, until the place is known again.
func (j *Journal) Append(ctx context.Context, records ...journal.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var msgs []*nats.Msg
	buf := j.buf[:0]
	for run := range runs(records) {
		var err error
		if msgs, buf, err = encode(msgs, buf, j.prefix+slot(run[0].Task), run, j.part); err != nil {
			return err
		}
	}
	if len(msgs) == 0 {
		return nil
	}
	if cap(buf) <= maxBuf {
		j.buf = buf // the connection copies what it publishes
	}
	together := len(msgs)
	if j.unsure {
		together = 1
	}
	for part := range slices.Chunk(msgs, together) {
		place, err := j.send(ctx, j.stream, part...)
		if err != nil {
			j.unsure = true
			return fmt.Errorf("writing to the journal: %w", err)
		}
		want := j.stored + uint64(len(part))
		j.stored = place
		if place < want || place > want && !j.unsure {
			return fmt.Errorf("writing to the journal: it is at %d after %d messages, want %d: some were not stored", place, len(part), want)
		}
	}
	j.unsure = false
	return nil
}

// Close implements journal.Journal. When it returns, the embedded server has written
// everything to its files and stopped.
func (j *Journal) Close() error {
	j.stop()
	if j.conn != nil {
		j.conn.Close()
	}
	if j.server != nil {
		j.server.Shutdown()
		j.server.WaitForShutdown()
	}
	return j.home.close()
}
