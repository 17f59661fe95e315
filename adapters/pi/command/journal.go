package command

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// What a command that was cut off by the end of the process has come to (facts,
// section 4.8).
const (
	Interrupted       = "Command did not finish before previous shutdown and was marked failed during recovery"
	InterruptedReason = "restart_inflight_marked_failed"
)

// RecordVersion is the version of the records in the journal.
const RecordVersion = 1

// appendTimeout is how long the journal may take for what waits for it. Then the server
// goes on without it: a disk that hangs stops nobody.
const appendTimeout = 5 * time.Second

// Record is one phase of a command in the journal.
type Record struct {
	Version  int    `json:"v"`
	Run      int64  `json:"run"` // of the server: with Number it names the command
	Number   uint64 `json:"n"`
	At       int64  `json:"at"` // in milliseconds
	Phase    phase  `json:"phase"`
	Scope    string `json:"scope,omitempty"`
	Name     string `json:"name"`
	Explicit bool   `json:"explicit,omitempty"`
	Kind     string `json:"kind"`
	Key      string `json:"key,omitempty"`
	Session  string `json:"session,omitempty"`
	Lane     string `json:"lane,omitempty"`
	// Identity is what lifecycle events say of it.
	Identity json.RawMessage `json:"is"`
	Print    []byte          `json:"print"`
	// Of a command that finished.
	Error          string          `json:"error,omitempty"`
	Data           json.RawMessage `json:"data,omitempty"`
	SessionVersion *int            `json:"version,omitempty"`
	TimedOut       bool            `json:"timed_out,omitempty"`
	Recovered      bool            `json:"recovered,omitempty"`
	// Queued says that its success is about a message that waits in memory, Opened where the
	// conversation of its session is.
	Queued bool    `json:"queued,omitempty"`
	Opened *opened `json:"opened,omitempty"`
	// Long says that the answer did not fit: the command runs again when it comes
	// again. Only answers to questions are ever that long.
	Long bool `json:"long,omitempty"`
}

// opened is where the conversation of a session is since a command succeeded.
type opened struct {
	ID   string `json:"id"`
	File string `json:"file"`
}

// opens returns what the journal is to know of the session of a command that succeeded, or
// nil.
func (x *Execution) opens() *opened {
	if !x.Spec.opens || x.session == nil {
		return nil
	}
	id, path := x.session.Location()
	if path == "" {
		return nil
	}
	return &opened{id, path}
}

// pendingRecord is a record on its way into the journal, and what waits for it.
type pendingRecord struct {
	of        *commandInfo // nil of what only waits
	phase     phase
	at        time.Time
	response  response
	recovered bool
	queued    bool
	opened    *opened
	done      func() // in a turn of the engine; nil does not wait
}

// Journal keeps what came of commands beyond the process, where the server has a journal,
// and makes their history. It has one writer.
type Journal struct {
	engine  *Engine
	stop    context.CancelFunc
	writing sync.WaitGroup
	wake    chan struct{} // signalled when there is something to keep

	// In turns of the engine.
	history  history
	recovery recovery

	mu    sync.Mutex
	queue []pendingRecord
	bytes int
	// written and unwritten are the records that the journal took and did not.
	written, unwritten int64
}

// start begins to write, where there is a journal.
func (j *Journal) start(e *Engine) {
	j.engine, j.wake = e, make(chan struct{}, 1)
	ctx, stop := context.WithCancel(context.Background())
	j.stop = stop
	if e.opts.Journal != nil {
		j.writing.Go(func() { j.write(ctx) })
	}
}

// close ends the writing once everything is written.
func (j *Journal) close() {
	j.stop()
	j.writing.Wait()
}

// add puts a record on its way; then is called once it is in the journal, or cannot come
// there. It reports false of a record for which there is no room: then is not called.
func (j *Journal) add(q pendingRecord) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if q.of != nil {
		size := recordBytes + len(q.of.identity) + len(q.response.data)
		if j.bytes+size > j.engine.opts.JournalQueueBytes && j.bytes > 0 {
			j.engine.host.Count("journal.overrun")
			return false
		}
		j.bytes += size
	}
	j.queue = append(j.queue, q)
	Signal(j.wake)
	return true
}

// recordBytes is about what a record costs beside its texts.
const recordBytes = 512

// take returns all that is to be written.
func (j *Journal) take() []pendingRecord {
	j.mu.Lock()
	defer j.mu.Unlock()
	batch := j.queue
	j.queue, j.bytes = nil, 0
	return batch
}

// write writes what is to be kept, all there is at a time, until the context ends and
// nothing is left.
func (j *Journal) write(ctx context.Context) {
	for {
		batch := j.take()
		if len(batch) == 0 {
			select {
			case <-j.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		err := j.append(batch)
		if err != nil {
			j.engine.opts.Log.Error("commands of pi clients are not in the journal: after a crash they would run again", "error", err)
		}
		j.count(batch, err)
		j.engine.mu.Lock()
		for _, q := range batch {
			if q.done != nil {
				q.done()
			}
		}
		j.engine.mu.Unlock()
	}
}

// count counts the records of a batch that the journal took, or did not.
func (j *Journal) count(batch []pendingRecord, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, q := range batch {
		switch {
		case q.of == nil:
		case err != nil:
			j.unwritten++
			j.engine.host.Count("journal.failed")
		default:
			j.written++
		}
	}
}

// records are how many records the journal took, and did not.
func (j *Journal) records() (written, unwritten int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.written, j.unwritten
}

func (j *Journal) append(batch []pendingRecord) error {
	var records [][]byte
	for _, q := range batch {
		if q.of != nil {
			records = append(records, j.encodeRecord(q))
		}
	}
	if len(records) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
	defer cancel()
	return j.engine.opts.Journal.Append(ctx, records...)
}

// durable reports whether what comes of a command has to outlive the process. On an
// open hub an id alone means nothing beyond its connection.
func (j *Journal) durable(k *tracked) bool {
	if j.engine.opts.Journal == nil {
		return false
	}
	if k.scope != "" {
		return k.explicit || k.key != ""
	}
	return k.explicit && k.key != ""
}

// recordAccepted has the journal know of a command before that begins, so that it can
// never be done twice.
func (x *Execution) recordAccepted() {
	e := x.engine
	if !e.journal.durable(x.tracked) {
		return
	}
	x.journalPending = e.journal.add(pendingRecord{of: &x.tracked.commandInfo, phase: PhaseAccepted, at: x.admitted, done: func() {
		x.journalPending = false
		if x.heldForJournal && !x.settled {
			x.execute()
		}
	}})
}

// recordStarted notes that a command began. Nothing waits for that.
func (x *Execution) recordStarted() {
	e := x.engine
	if e.journal.durable(x.tracked) {
		e.journal.add(pendingRecord{of: &x.tracked.commandInfo, phase: PhaseStarted, at: time.Now()})
	}
}

// recordOutcome concludes a command once the journal knows what came of it, before
// anybody else does: what a client was told is what it will be told again.
func (x *Execution) recordOutcome(r response, after func()) {
	e := x.engine
	q := pendingRecord{of: &x.tracked.commandInfo, phase: phaseFinished, at: time.Now(), response: r, done: func() { e.conclude(x, r, after) }}
	if r.err == "" {
		q.queued, q.opened = x.queued, x.opens()
	}
	if !e.journal.durable(x.tracked) || !e.journal.add(q) {
		e.conclude(x, r, after)
	}
}

func (j *Journal) encodeRecord(q pendingRecord) []byte {
	a, o := q.of, q.response
	r := Record{
		Version: RecordVersion, Run: j.engine.startedAt, Number: a.number, At: q.at.UnixMilli(), Phase: q.phase, Scope: a.scope, Name: a.name,
		Explicit: a.explicit, Kind: a.kind, Key: a.key, Session: a.session, Lane: a.lane, Identity: a.object(), Print: a.fingerprint[:],
		Error: o.err, Data: o.data, TimedOut: o.timedOut, Recovered: q.recovered,
		Queued: q.queued, Opened: q.opened,
	}
	if a.run != 0 {
		r.Run = a.run
	}
	if o.hasVersion {
		r.SessionVersion = &o.version
	}
	if data := wire.Encode(r); len(data) <= core.MaxRecord {
		return data
	}
	r.Data, r.Long = nil, true
	return wire.Encode(r)
}

// object is the identity as a JSON value.
func (a *commandInfo) object() json.RawMessage {
	return append(append([]byte{'{'}, a.identity...), '}')
}

// Flush waits until everything is in the journal that is on its way. It takes a turn.
func (j *Journal) Flush() {
	if j.engine.opts.Journal == nil {
		return
	}
	done := make(chan struct{})
	j.engine.mu.Lock()
	j.add(pendingRecord{done: func() { close(done) }})
	j.engine.mu.Unlock()
	<-done
}
