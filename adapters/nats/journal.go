package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/timer"
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
	// Cluster says how this hub works together with others; nil if it is alone.
	Cluster *Cluster
	// Replicas is on how many servers of an external cluster each stream is kept. 0 is one for a hub
	// alone, and three for those of a cluster. Embedded servers of a cluster keep three.
	Replicas int
	// Logs are the other logs, by names of letters, and how much each keeps.
	Logs map[string]journal.Retention
	// Version is that of the program, for those who find a journal in a format that they do not read.
	Version string
	// Waiting, if set, is told what Open waits for whenever that changes: the embedded server of a hub
	// in a cluster needs others.
	Waiting func(Wait)
}

// Journal is a journal.Journal on JetStream.
type Journal struct {
	log    *slog.Logger
	server *server.Server // nil if the server is external
	conn   *nats.Conn
	js     jetstream.JetStream
	tasks  *hubTasks
	usage  *Usage
	logs   map[string]*Log
	// otherReads are the places for tasks of other hubs, whose servers may be silent.
	otherReads places
	// address is that of the external server, without secrets.
	address string
	version string // of the program
	// clustered tells that there are other hubs; bus, claims and keys are nil else.
	clustered bool
	shares    string // the name of the cluster, of a hub alone its own
	// user and password are those of this process at its embedded server in a cluster.
	user, password string
	replicas       int
	waiting        *waiting // nil once the journal is open, and where nobody is waited for
	leaderTerm     leaderTerm
	unheard        unheard
	bus            *Bus
	claims         *Claims
	keys           *Keys
	life           journal.Life
	part           int // the most bytes of one message
	marks          marks
	// tellEvery is the time between two lines of the log while Heads reads.
	tellEvery time.Duration
	// latestHeads is how many tasks that have an end Heads yields at least.
	latestHeads int
	// ownerBytes is after how many bytes the owner of the tasks is written again, in a cluster.
	ownerBytes int64

	// fences are the streams of the hub, that of the tasks first.
	fences  []*fence
	deposed deposed
	// majority is why servers other than one of this process alone can store nothing, by the last look.
	majority trouble

	// home and config are those of the embedded server: its directory and what JetStream
	// runs with.
	home    *home
	config  server.JetStreamConfig
	failure failure
	// reopening is held for reading while the streams are used, and for writing while
	// their store is opened again.
	reopening sync.RWMutex
	stop      func() // ends the goroutines of supervise
}

var (
	_ journal.Shared     = (*Journal)(nil)
	_ journal.Replicated = (*Journal)(nil)
)

// Open starts the embedded server or connects to the external one, makes missing streams and
// begins the next life of the hub, which takes over the one before. In a cluster, a second hub of a
// name is refused while the first one answers. Close ends it.
func Open(ctx context.Context, o Options) (*Journal, error) {
	name := cmp.Or(o.Name, "dragoman")
	if !isName(name) {
		return nil, fmt.Errorf("the name %q of the journal may have letters, digits, dashes and underscores only", name)
	}
	keep, keepUsage := o.Keep.Or(), o.KeepUsage.Or()
	j := &Journal{
		log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), version: o.Version, address: Redacted(o.URL), logs: map[string]*Log{}, tellEvery: tellEvery, latestHeads: journal.LatestHeads, ownerBytes: ownerBytes,
		otherReads: make(places, maxOtherReads),
		failure:    failure{reported: make(chan struct{}, 1)}, deposed: deposed{told: make(chan struct{})}, stop: func() {},
	}
	err := j.start(ctx, o, name)
	if err == nil {
		err = j.openStreams(ctx, o, name, keep, keepUsage)
	}
	if err == nil {
		err = j.supervise(o.Dir)
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	j.waiting = nil
	return j, nil
}

// start starts the embedded server, if there is one, joins the cluster and connects.
func (j *Journal) start(ctx context.Context, o Options, name string) (err error) {
	j.replicas, j.shares = max(o.Replicas, 1), name
	if o.Cluster != nil {
		if err := o.Cluster.check(); err != nil {
			return err
		}
		j.clustered, j.shares = true, o.Cluster.Name
		if o.URL == "" {
			j.replicas = replicasOfCluster
		}
	}
	if o.URL == "" {
		if err := j.startServer(ctx, o, name); err != nil {
			return err
		}
	}
	if err = j.connect(ctx, o.URL); err != nil || o.Cluster == nil {
		return err
	}
	if o.Replicas == 0 && j.conn.ConnectedClusterName() != "" { // an external server that is one of several
		j.replicas = replicasOfCluster
	}
	if err = j.openBus(ctx, o.URL, o.Cluster.Name); err != nil {
		return err
	}
	return j.Insist(ctx, func(ctx context.Context) error {
		if err := j.openClaims(ctx, o.Cluster.Name); err != nil {
			return err
		}
		return j.openKeys(ctx, o.Cluster.Name)
	})
}

// startServer starts the embedded server on the files in its directory, and waits for the others of its cluster.
func (j *Journal) startServer(ctx context.Context, o Options, name string) (err error) {
	if j.clustered {
		if err = refuseSecondServer(ctx, o.Cluster, name); err == nil {
			err = j.setAside(o.Dir, name)
		}
	} else {
		j.marks.read(filepath.Join(o.Dir, storeDir))
		err = dropIndexes(filepath.Join(o.Dir, storeDir))
	}
	if err != nil {
		return err
	}
	if err := j.embed(o, filepath.Join(o.Dir, storeDir), name); err != nil || !j.clustered {
		return err
	}
	j.waiting = &waiting{begin: time.Now(), tell: o.Waiting, cluster: o.Cluster, dir: o.Dir}
	return j.waitForCluster(ctx)
}

// openStreams makes the streams of the hub and begins its next life.
func (j *Journal) openStreams(ctx context.Context, o Options, name string, keep journal.Retention, keepUsage usage.Retention) (err error) {
	if err = j.openTasks(ctx, name, keep); err != nil {
		return err
	}
	if err = j.refuseSecond(ctx, name); err != nil {
		return err
	}
	if j.usage, err = j.openUsage(ctx, name, keepUsage); err != nil {
		return err
	}
	for l, keep := range o.Logs {
		if j.logs[l], err = j.openLog(ctx, name, l, keep.Or()); err != nil {
			return err
		}
	}
	joins := j.clustered && j.server != nil
	if joins {
		if err = j.Insist(ctx, func(context.Context) error { return j.copyAside(ctx, o.Dir) }); err != nil {
			return err
		}
	}
	err = j.Insist(ctx, func(ctx context.Context) error { return j.begin(ctx, name) })
	if err == nil && joins {
		err = keepCopied(o.Dir)
	}
	return err
}

func (j *Journal) connect(ctx context.Context, url string) (err error) {
	if j.conn, err = j.dial(ctx, url); err != nil {
		return err
	}
	const overhead = 4 << 10 // headers, subject
	j.part = int(min(j.conn.MaxPayload(), payload)) - overhead
	j.js, err = jetstream.New(j.conn)
	return err
}

func (j *Journal) openTasks(ctx context.Context, name string, keep journal.Retention) (err error) {
	j.tasks = j.tasksOf(name)
	j.tasks.reads = make(places, maxReads)
	j.tasks.fence, err = j.openStream(ctx, j.tasks.stream, "the tasks of a Dragoman hub, a subject for those begun within 4 seconds", keep, "")
	if err == nil && j.clustered {
		j.tasks.open = &openTasks{hub: name, last: map[core.TaskID]uint64{}}
	}
	return err
}

// openStream makes a stream of the hub if it is missing, with a subject; "" stands for those of the tasks.
func (j *Journal) openStream(ctx context.Context, name, what string, keep journal.Retention, subject string) (*fence, error) {
	f := &fence{j: j, stream: name, own: subject + ownSuffix, subject: subject, keep: keep}
	stored := subject
	if subject == "" {
		stored, f.own = j.tasks.prefix+">", j.tasks.own
	}
	c := jetstream.StreamConfig{
		Name: name, Description: what, Subjects: []string{stored, f.own}, MaxAge: keep.Age, MaxBytes: keep.Bytes,
		Storage: jetstream.FileStorage, Discard: jetstream.DiscardOld, AllowDirect: true, Replicas: j.replicas,
	}
	var s jetstream.Stream
	err := j.Insist(ctx, func(ctx context.Context) (err error) {
		if c.Metadata, err = j.metadata(ctx, c.Name); err == nil {
			s, err = j.js.CreateOrUpdateStream(ctx, c)
		}
		return err
	})
	if err == nil && j.alone() {
		err = f.opened(ctx, s)
	}
	if err != nil {
		return nil, fmt.Errorf("making the stream %s: %w", name, err)
	}
	f.place = s.CachedInfo().State.LastSeq
	j.fences = append(j.fences, f)
	return f, nil
}

// supervise watches what the journal is stored on until Close: the directory and the store of the embedded
// server, and other servers.
func (j *Journal) supervise(dir string) error {
	if j.server != nil {
		if err := j.openHome(dir); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	every := func(pause time.Duration, do func(context.Context)) {
		running.Go(func() {
			for timer.Sleep(ctx, pause) == nil {
				do(ctx)
			}
		})
	}
	if j.alone() {
		running.Go(func() { j.reopenAfterFailures(ctx) })
		j.mark(ctx)
		every(markTime, j.mark)
	} else {
		every(majorityCheck, j.lookForMajority)
	}
	if j.server != nil && j.clustered {
		running.Go(func() { j.lendLeadership(ctx) })
		every(leaderCheck, j.lendLeadership)
	}
	j.stop = func() {
		cancel()
		running.Wait()
	}
	return nil
}

// openHome opens the directory of the embedded server.
func (j *Journal) openHome(dir string) (err error) {
	var streams []string
	for _, f := range j.fences {
		if !j.clustered { // else other servers may have them
			streams = append(streams, f.stream)
		}
	}
	j.config = *j.server.JetStreamConfig()
	if j.home, err = openHome(dir, streams...); err != nil {
		return err
	}
	// JetStream appends the last element itself.
	j.config.StoreDir = filepath.Dir(j.config.StoreDir)
	return nil
}

// Append implements journal.Journal.
func (j *Journal) Append(ctx context.Context, records ...journal.Record) error {
	if err := j.tasks.append(ctx, records); err != nil {
		return fmt.Errorf("writing to the journal: %w", err)
	}
	return nil
}

// Close implements journal.Journal. When it returns, the embedded server has written
// everything to its files and stopped.
func (j *Journal) Close() error {
	j.stop()
	if j.home != nil && j.alone() {
		j.mark(context.Background())
	}
	j.bus.close()
	if j.conn != nil {
		j.conn.Close()
	}
	if j.server != nil {
		j.server.Shutdown()
		j.server.WaitForShutdown()
	}
	return j.home.close()
}
