package command

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// The outcome of a command that the end of the process interrupted (facts, section 4.8).
const (
	Interrupted       = "Command did not finish before previous shutdown and was marked failed during recovery"
	InterruptedReason = "restart_inflight_marked_failed"
)

// RecordVersion is the version of the records in the journal.
const RecordVersion = 1

// appendTimeout bounds one write to the journal. After it the server continues without: a
// disk that hangs must not stop it.
const appendTimeout = 5 * time.Second

// Record is one phase of a command in the journal.
type Record struct {
	Version  int    `json:"v"`
	Run      int64  `json:"run"` // of the server; identifies the command together with Number
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
	// Identity has the members that the lifecycle events of the command share.
	Identity json.RawMessage `json:"is"`
	Print    []byte          `json:"print"`
	// Set when the command has finished.
	Error          string          `json:"error,omitempty"`
	Data           json.RawMessage `json:"data,omitempty"`
	SessionVersion *int            `json:"version,omitempty"`
	TimedOut       bool            `json:"timed_out,omitempty"`
	Recovered      bool            `json:"recovered,omitempty"`
	// Queued says that the success is about a message that was queued in memory. Opened is
	// the conversation of the session.
	Queued bool    `json:"queued,omitempty"`
	Opened *opened `json:"opened,omitempty"`
	// Long says that the data did not fit: the command is executed again when it is sent
	// again. Only queries have data of that size.
	Long bool `json:"long,omitempty"`
}

// opened is where the conversation of a session is after a command succeeded.
type opened struct {
	ID   string `json:"id"`
	File string `json:"file"`
}

// opens returns where the conversation of the session is, if a success of this command
// decides that and it has a file, else nil.
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

// pendingRecord is a record that waits to be written.
type pendingRecord struct {
	of        *commandInfo // nil where there is nothing to write before done
	phase     phase
	at        time.Time
	response  response
	recovered bool
	queued    bool
	opened    *opened
	done      func() // called in a turn of the engine, written or not; may be nil
}

// Journal writes commands and their outcomes to the journal of the server, if it has one,
// and keeps their history. It has one writer goroutine.
type Journal struct {
	engine  *Engine
	stop    context.CancelFunc
	writing sync.WaitGroup
	queue   *fifo.Mailbox[pendingRecord]

	// Used in turns of the engine.
	history  history
	recovery recovery

	mu sync.Mutex
	// written and unwritten count the records that the journal took and did not take.
	written, unwritten int64
}

// start starts the writer, if there is a journal.
func (j *Journal) start(e *Engine) {
	j.engine, j.queue = e, fifo.NewMailbox(e.opts.JournalQueueBytes, pendingRecord.size)
	ctx, stop := context.WithCancel(context.Background())
	j.stop = stop
	if e.opts.Journal != nil {
		j.writing.Go(func() { j.write(ctx) })
	}
}

// close ends the writer once everything is written.
func (j *Journal) close() {
	j.stop()
	j.writing.Wait()
}

// add queues a record. It reports false where the queue has no room for the record: done
// is not called then.
func (j *Journal) add(q pendingRecord) bool {
	if !j.queue.Offer(q) {
		j.engine.host.Count("journal.overrun")
		return false
	}
	return true
}

// recordBytes is roughly what a record costs without its texts.
const recordBytes = 512

func (q pendingRecord) size() int {
	if q.of == nil {
		return 0
	}
	return recordBytes + len(q.of.identity) + len(q.response.data)
}

// write writes the queue in batches until the context ends and the queue is empty.
func (j *Journal) write(ctx context.Context) {
	for {
		batch := j.queue.PollAll()
		if len(batch) == 0 {
			select {
			case <-j.queue.Ready():
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

// count counts the records of a batch.
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

// durable reports whether the outcome of a command has to outlive the process. On an open
// hub an id alone means nothing beyond its connection.
func (j *Journal) durable(k *tracked) bool {
	if j.engine.opts.Journal == nil {
		return false
	}
	if k.scope != "" {
		return k.explicit || k.key != ""
	}
	return k.explicit && k.key != ""
}

// recordAccepted writes a command to the journal before it starts, so that it is never
// executed twice.
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

// recordStarted writes that a command started. Nothing waits for that.
func (x *Execution) recordStarted() {
	e := x.engine
	if e.journal.durable(x.tracked) {
		e.journal.add(pendingRecord{of: &x.tracked.commandInfo, phase: PhaseStarted, at: time.Now()})
	}
}

// recordOutcome writes the outcome of a command and concludes the command after that, so
// that a crash cannot change an outcome that a client has.
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
	if data := strictjson.Encode(r); len(data) <= core.MaxRecord {
		return data
	}
	r.Data, r.Long = nil, true
	return strictjson.Encode(r)
}

// object returns the identity as a JSON object.
func (a *commandInfo) object() json.RawMessage {
	return append(append([]byte{'{'}, a.identity...), '}')
}

// Flush waits until the queue is written. It takes a turn.
func (j *Journal) Flush() {
	if j.engine.opts.Journal == nil {
		return
	}
	done := make(chan struct{})
	j.engine.mu.Lock()
	j.queue.Put(pendingRecord{done: func() { close(done) }})
	j.engine.mu.Unlock()
	<-done
}
