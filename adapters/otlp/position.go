package otlp

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

const (
	positionTime  = 5 * time.Second // between two records of the position
	positionSlack = 5 * time.Second // between the end of a task and when the Exporter hears of it, at most
	maxMissed     = 1 << 16         // tasks that are exported after a restart
)

// position is how far an Exporter is: tasks that ended before were exported, or counted as dropped.
// Records of it are rare, so that after a kill tasks are exported again, with the same ids.
type position struct {
	log     core.RecordLog // or nil
	since   time.Time      // where an earlier process was; zero for none
	written time.Time      // when the last record was
}

// openPosition reads the position, and begins one where there is none: a task may end at once.
func openPosition(ctx context.Context, log core.RecordLog) (p position, err error) {
	if log == nil {
		return p, nil
	}
	p.log = log
	err = log.Replay(ctx, func(_ time.Time, record []byte) bool {
		if len(record) == 8 {
			p.since = time.Unix(0, int64(binary.BigEndian.Uint64(record))) //nolint:gosec // as it was written
		}
		return true
	})
	if err == nil && p.since.IsZero() {
		err = p.note(ctx, time.Now())
	}
	if err != nil {
		return p, fmt.Errorf("how far traces were exported: %w", err)
	}
	return p, nil
}

// note records the position.
func (p *position) note(ctx context.Context, at time.Time) error {
	if p.log == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, positionTime)
	defer cancel()
	if err := p.log.Append(ctx, binary.BigEndian.AppendUint64(nil, uint64(at.UnixNano()))); err != nil { //nolint:gosec // read as it was written
		return err
	}
	p.written = time.Now()
	return nil
}

// advance records that the tasks until the last one are exported, unless a record was written
// lately.
func (p *position) advance(ctx context.Context, last time.Time) error {
	if last.IsZero() || time.Since(p.written) < positionTime {
		return nil
	}
	return p.note(ctx, last.Add(-positionSlack))
}

// Missed implements part of [policy.Tracer].
func (e *Exporter) Missed(end time.Time) bool {
	return !e.position.since.IsZero() && !end.Before(e.position.since)
}

// Recovered implements part of [policy.Tracer]. The newest tasks are exported, as far as there are
// too many.
func (e *Exporter) Recovered(all []core.TaskID) {
	for ; len(all) > maxMissed; all = all[1:] {
		e.opts.Count(dropped)
	}
	select {
	case e.missed <- all:
	default: // it is called once
	}
}

// takeMissed takes what an earlier process did not export, before anything else: the position must
// not pass it.
func (e *Exporter) takeMissed(find Find) {
	select {
	case all := <-e.missed:
		e.takeAll(find, all)
	default:
	}
}

func (e *Exporter) takeAll(find Find, all []core.TaskID) {
	for _, id := range all {
		if e.ctx.Err() != nil {
			return // the next process does it
		}
		e.take(find, id)
	}
}
