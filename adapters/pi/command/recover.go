package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Recover reads the outcomes of earlier commands from the journal, so that they are
// replayed instead of executed again. A command that was interrupted counts as failed. Call
// Recover once, before any connection is served; it does nothing without a journal. It
// returns the journal's error.
func (j *Journal) Recover(ctx context.Context) error {
	if j.engine.opts.Journal == nil {
		return nil
	}
	inFlight := map[recordID]*tracked{}
	var order []recordID
	j.recovery.started = map[*tracked]bool{}
	err := j.engine.opts.Journal.Replay(ctx, func(_ time.Time, data []byte) bool {
		j.engine.mu.Lock()
		defer j.engine.mu.Unlock()
		j.recovery.scanned++
		r, err := readRecord(data)
		switch {
		case err != nil:
			j.recovery.malformed++
			return true
		case r.Version != RecordVersion:
			j.recovery.unsupported++
			return true
		}
		of := recordID{r.Run, r.Number}
		k := inFlight[of]
		if k == nil && r.Phase != PhaseAccepted {
			return true // the start is no longer kept, or the end was written twice
		}
		if k == nil {
			k = r.command()
			inFlight[of] = k
			order = append(order, of)
		}
		j.restorePhase(k, r)
		if r.Phase == phaseFinished {
			delete(inFlight, of)
		}
		return true
	})
	j.engine.mu.Lock()
	defer j.engine.mu.Unlock()
	if err != nil {
		j.recovery.failed = "the journal cannot be read"
		return fmt.Errorf("reading the commands of pi clients: %w", err)
	}
	now := time.Now()
	for _, of := range order {
		k := inFlight[of]
		if k == nil {
			continue
		}
		r := response{err: Interrupted}
		j.engine.replay.add(k)
		j.engine.replay.settle(k, r, now)
		j.recovery.interrupted = append(j.recovery.interrupted, k)
		j.history.add(entry{at: now.UnixMilli(), of: &k.commandInfo, phase: phaseFinished, response: r, recovered: true})
		j.add(pendingRecord{of: &k.commandInfo, phase: phaseFinished, at: now, response: r, recovered: true})
	}
	j.recovery.ready = true
	return nil
}

// recordID identifies a command in the journal.
type recordID struct {
	run    int64
	number uint64
}

// readRecord reads a record. Of one of another version only Version is reliable.
func readRecord(data []byte) (r Record, err error) {
	if err := json.Unmarshal(data, &r); err != nil || r.Version != RecordVersion {
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

// command returns the command of a record.
func (r Record) command() *tracked {
	k := &tracked{commandInfo: commandInfo{
		name: r.Name, explicit: r.Explicit, kind: r.Kind, key: r.Key, session: r.Session, scope: r.Scope, lane: r.Lane,
		identity: r.Identity[1 : len(r.Identity)-1], fingerprint: fingerprint(r.Print), number: r.Number, run: r.Run,
	}}
	id := ""
	if r.Explicit {
		id = r.Name
	}
	if r.Scope != "" {
		k.ids = appendIDs(nil, Namespace{Principal: r.Scope}, id, r.Key)
	} else if id != "" && r.Key != "" {
		k.ids = []scopedID{{sharedNamespace, id, r.Key}}
	}
	if r.Key != "" {
		k.keyed = scopedKey{r.Scope, r.Lane, r.Key}
	}
	return k
}

// restorePhase restores one phase of an earlier command.
func (j *Journal) restorePhase(k *tracked, r Record) {
	h := entry{at: r.At, of: &k.commandInfo, phase: r.Phase, recovered: r.Recovered}
	switch r.Phase {
	case PhaseStarted:
		j.recovery.started[k] = true
	case phaseFinished:
		delete(j.recovery.started, k)
		if r.Error == "" {
			j.engine.host.Recovered(r.success())
		}
		h.response = response{err: r.Error, data: r.Data, timedOut: r.TimedOut}
		if r.SessionVersion != nil {
			h.version, h.hasVersion = *r.SessionVersion, true
		}
		if r.Long {
			break
		}
		at := time.UnixMilli(r.At)
		j.engine.replay.expireKeys(at)
		j.engine.replay.add(k)
		outcome := h.response
		if r.Queued {
			outcome = response{err: DeliveryUnknown}
		}
		j.engine.replay.settle(k, outcome, at)
		j.recovery.outcomes = append(j.recovery.outcomes, k)
	}
	j.history.add(h)
}

// Success is a command that succeeded in an earlier process.
type Success struct {
	Key  Key
	Kind string
	At   time.Time
	// File is the path of the conversation that the command gave the session, or "".
	File string
	// Version is the version of the session, or nil.
	Version *int
}

// success returns the success that a record describes.
func (r Record) success() Success {
	s := Success{Key: Key{r.Scope, r.Session}, Kind: r.Kind, At: time.UnixMilli(r.At), Version: r.SessionVersion}
	if r.Opened != nil {
		s.Key.ID, s.File = r.Opened.ID, r.Opened.File
	}
	return s
}
