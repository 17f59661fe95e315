package pi

import (
	"context"
	"encoding/json"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// What a command that was cut off by the end of the process has come to (facts,
// section 4.8).
const (
	interrupted       = "Command did not finish before previous shutdown and was marked failed during recovery"
	interruptedReason = "restart_inflight_marked_failed"
)

// recordVersion is the version of the records in the journal.
const recordVersion = 1

// keepTime is how long the journal may take for what waits for it. Then the server
// goes on without it: a disk that hangs stops nobody.
const keepTime = 5 * time.Second

// record is one phase of a command in the journal.
type record struct {
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

// keeping is a record on its way into the journal, and what waits for it.
type keeping struct {
	of        *about // nil of what only waits
	phase     phase
	at        time.Time
	response  response
	recovered bool
	queued    bool
	opened    *opened
	then      func() // nil does not wait
}

// kept reports whether what comes of a command has to outlive the process. On an
// open hub an id alone means nothing beyond its connection.
func (s *Server) kept(k *known) bool {
	if s.opts.Journal == nil {
		return false
	}
	if k.scope != "" {
		return k.explicit || k.key != ""
	}
	return k.explicit && k.key != ""
}

// keep puts a record on its way; then is called with Server.mu held once it is in the
// journal, or cannot come there. It reports false of a record for which there is no
// room: then is not called.
func (s *Server) keep(q keeping) bool {
	if q.of != nil {
		size := recordBytes + len(q.of.identity) + len(q.response.data)
		if s.toKeepBytes+size > s.opts.UnkeptBytes && s.toKeepBytes > 0 {
			s.count("journal.overrun")
			return false
		}
		s.toKeepBytes += size
	}
	s.toKeep = append(s.toKeep, q)
	signal(s.writes)
	return true
}

// recordBytes is about what a record costs beside its texts.
const recordBytes = 512

// keepAccepted has the journal know of a command before that begins, so that it can
// never be done twice.
func (s *Server) keepAccepted(x *execution) {
	if !s.kept(x.known) {
		return
	}
	x.unkept = s.keep(keeping{of: &x.known.about, phase: phaseAccepted, at: x.admitted, then: func() {
		x.unkept = false
		if x.held && !x.settled {
			s.execute(x)
		}
	}})
}

// unkept reports whether a command has to wait for the journal; it is executed then.
func (s *Server) unkept(x *execution) bool {
	x.held = x.unkept
	return x.held
}

// keepStarted notes that a command began. Nothing waits for that.
func (s *Server) keepStarted(x *execution) {
	if s.kept(x.known) {
		s.keep(keeping{of: &x.known.about, phase: phaseStarted, at: time.Now()})
	}
}

// keepOutcome concludes a command once the journal knows what came of it, before
// anybody else does: what a client was told is what it will be told again.
func (s *Server) keepOutcome(x *execution, r response, after func()) {
	q := keeping{of: &x.known.about, phase: phaseFinished, at: time.Now(), response: r, then: func() { s.conclude(x, r, after) }}
	if r.err == "" {
		q.queued, q.opened = x.queued, x.opens()
	}
	if !s.kept(x.known) || !s.keep(q) {
		s.conclude(x, r, after)
	}
}

// keepUp waits until everything is in the journal that is on its way.
func (s *Server) keepUp() {
	if s.opts.Journal == nil {
		return
	}
	done := make(chan struct{})
	s.mu.Lock()
	s.keep(keeping{then: func() { close(done) }})
	s.mu.Unlock()
	<-done
}

// write writes what is to be kept, all there is at a time, until the context ends and
// nothing is left. It is the one writer.
func (s *Server) write(ctx context.Context) {
	for {
		s.mu.Lock()
		batch := s.toKeep
		s.toKeep, s.toKeepBytes = nil, 0
		s.mu.Unlock()
		if len(batch) == 0 {
			select {
			case <-s.writes:
				continue
			case <-ctx.Done():
				return
			}
		}
		err := s.append(batch)
		if err != nil {
			s.opts.Log.Error("commands of pi clients are not in the journal: after a crash they would run again", "error", err)
		}
		s.mu.Lock()
		for _, q := range batch {
			switch {
			case q.of == nil:
			case err != nil:
				s.unwritten++
				s.count("journal.failed")
			default:
				s.written++
			}
			if q.then != nil {
				q.then()
			}
		}
		s.mu.Unlock()
	}
}

func (s *Server) append(batch []keeping) error {
	var records [][]byte
	for _, q := range batch {
		if q.of != nil {
			records = append(records, s.encodeRecord(q))
		}
	}
	if len(records) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), keepTime)
	defer cancel()
	return s.opts.Journal.Append(ctx, records...)
}

func (s *Server) encodeRecord(q keeping) []byte {
	a, o := q.of, q.response
	r := record{
		Version: recordVersion, Run: s.begun, Number: a.number, At: q.at.UnixMilli(), Phase: q.phase, Scope: a.scope, Name: a.name,
		Explicit: a.explicit, Kind: a.kind, Key: a.key, Session: a.session, Lane: a.lane, Identity: a.object(), Print: a.print[:],
		Error: o.err, Data: o.data, TimedOut: o.timedOut, Recovered: q.recovered,
		Queued: q.queued, Opened: q.opened,
	}
	if a.run != 0 {
		r.Run = a.run
	}
	if o.hasV {
		r.SessionVersion = &o.version
	}
	if data := wire.Encode(r); len(data) <= core.MaxRecord {
		return data
	}
	r.Data, r.Long = nil, true
	return wire.Encode(r)
}

// object is the identity as a JSON value.
func (a *about) object() json.RawMessage {
	return append(append([]byte{'{'}, a.identity...), '}')
}
