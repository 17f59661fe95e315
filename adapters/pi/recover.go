package pi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Recover reads from the journal what came of earlier commands, so that they are
// replayed and not done again. A command that was cut off counts as failed from now
// on. Call it once, before any connection is served; it does nothing without a
// journal. It returns the journal's error.
func (s *Server) Recover(ctx context.Context) error {
	if s.opts.Journal == nil {
		return nil
	}
	flying := map[flight]*known{}
	var order []flight
	s.found.started = map[*known]bool{}
	err := s.opts.Journal.Replay(ctx, func(_ time.Time, data []byte) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.found.scanned++
		r, err := readRecord(data)
		switch {
		case err != nil:
			s.found.malformed++
			return true
		case r.Version != recordVersion:
			s.found.unsupported++
			return true
		}
		of := flight{r.Run, r.Number}
		k := flying[of]
		if k == nil && r.Phase != phaseAccepted {
			return true // its beginning is no longer kept, or it was written twice
		}
		if k == nil {
			k = r.known()
			flying[of] = k
			order = append(order, of)
		}
		s.remind(k, r)
		if r.Phase == phaseFinished {
			delete(flying, of)
		}
		return true
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.found.failed = "the journal cannot be read"
		return fmt.Errorf("reading the commands of pi clients: %w", err)
	}
	now := time.Now()
	for _, of := range order {
		k := flying[of]
		if k == nil {
			continue
		}
		r := response{err: interrupted}
		s.memory.add(k)
		s.memory.remember(k, r, now)
		s.found.cut = append(s.found.cut, k)
		s.past.add(entry{at: now.UnixMilli(), of: &k.about, phase: phaseFinished, response: r, recovered: true})
		s.keep(keeping{of: &k.about, phase: phaseFinished, at: now, response: r, recovered: true})
	}
	s.found.ready = true
	return nil
}

// flight names a command in the journal.
type flight struct {
	run    int64
	number uint64
}

// readRecord reads a record. One of another version is read as far as that tells.
func readRecord(data []byte) (r record, err error) {
	if err := json.Unmarshal(data, &r); err != nil || r.Version != recordVersion {
		return r, err
	}
	var is struct {
		CommandID *string `json:"commandId"`
	}
	if err := json.Unmarshal(r.Identity, &is); err != nil {
		return r, err
	}
	if is.CommandID == nil || len(r.Print) != len(fingerprint{}) {
		return r, errors.New("a record of no command")
	}
	return r, nil
}

// known returns the command of a record.
func (r record) known() *known {
	k := &known{about: about{
		name: r.Name, explicit: r.Explicit, kind: r.Kind, key: r.Key, session: r.Session, scope: r.Scope, lane: r.Lane,
		identity: r.Identity[1 : len(r.Identity)-1], print: fingerprint(r.Print), number: r.Number, run: r.Run,
	}}
	id := ""
	if r.Explicit {
		id = r.Name
	}
	if r.Scope != "" {
		k.names = namesOf(nil, space{principal: r.Scope}, id, r.Key)
	} else if id != "" && r.Key != "" {
		k.names = []idName{{everybody, id, r.Key}}
	}
	if r.Key != "" {
		k.keyed = keyName{r.Scope, r.Lane, r.Key}
	}
	return k
}

// remind takes in one phase of an earlier command.
func (s *Server) remind(k *known, r record) {
	e := entry{at: r.At, of: &k.about, phase: r.Phase, recovered: r.Recovered}
	switch r.Phase {
	case phaseStarted:
		s.found.started[k] = true
	case phaseFinished:
		delete(s.found.started, k)
		s.parkAgain(r)
		e.response = response{err: r.Error, data: r.Data, timedOut: r.TimedOut}
		if r.SessionVersion != nil {
			e.version, e.hasV = *r.SessionVersion, true
		}
		if r.Long {
			break
		}
		at := time.UnixMilli(r.At)
		s.memory.age(at)
		s.memory.add(k)
		outcome := e.response
		if r.Queued {
			outcome = response{err: doubtful}
		}
		s.memory.remember(k, outcome, at)
		s.found.outcomes = append(s.found.outcomes, k)
	}
	s.past.add(e)
}
