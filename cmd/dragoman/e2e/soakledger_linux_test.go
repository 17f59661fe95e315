package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
)

// soakLedger reads the events of all tasks: each task has every event once, and one end in time.
type soakLedger struct {
	*soak
	at    string // where to resume
	tasks map[core.TaskID]*soakTask
}

// soakTask is a task that the ledger has seen.
type soakTask struct {
	last  uint64 // the number of its last event
	first time.Time
	ended time.Time
}

func newSoakLedger(s *soak) *soakLedger {
	return &soakLedger{soak: s, tasks: map[core.TaskID]*soakTask{}}
}

const (
	latestEnd  = 6 * time.Minute // of a task, from when it was opened: the longest deadline is 5
	remembered = time.Minute     // a task that has ended
)

// run reads until the load ends, with breaks.
func (l *soakLedger) run() {
	for begun := false; l.ctx.Err() == nil; begun = true {
		ctx, cancel := context.WithTimeout(l.ctx, 5*time.Second+rand.N(20*time.Second))
		err := l.read(ctx, begun)
		switch {
		case errors.Is(err, errHole):
			l.wrong("the events of all tasks: %w", err)
		case err != nil && ctx.Err() == nil:
			l.count("the stream of all tasks was refused or cut: " + err.Error())
		}
		cancel()
		now := time.Now()
		maps.DeleteFunc(l.tasks, func(id core.TaskID, t *soakTask) bool {
			if t.ended.IsZero() && now.Sub(t.first) > latestEnd {
				l.wrong("task %s has no end after %v", id, now.Sub(t.first))
			}
			return !t.ended.IsZero() && now.Sub(t.ended) > remembered
		})
		pauseFor(l.ctx, rand.N(time.Second))
	}
}

// read reads one stream. One that resumes may repeat what its reader has, and leaves nothing out.
func (l *soakLedger) read(ctx context.Context, resumes bool) error {
	path := "/v1/events"
	if l.at != "" {
		path += "?from=" + url.QueryEscape(l.at)
	}
	resp, err := l.hub.Do(ctx, http.MethodGet, path, client.NDJSON, nil)
	if err != nil {
		return err
	}
	if l.at == "" {
		l.at = resp.Header.Get("Last-Event-ID")
	}
	return client.Follow(resp, func(e client.Line, raw []byte) error {
		if e.Shutdown != nil {
			return nil
		}
		if e.Gap != nil {
			return fmt.Errorf("%w: got a gap: %s", errHole, raw)
		}
		if e.ID != "" {
			l.at = e.ID
		}
		t := l.tasks[e.Task]
		if t == nil {
			t = &soakTask{first: time.Now()}
			if !resumes { // it may have begun before
				t.last = e.Seq - 1
			}
			l.tasks[e.Task] = t
		}
		switch {
		case e.Seq <= t.last && resumes: // chunks that have been merged meanwhile may come again with new ones
			l.count("events of all tasks that came again after a resume")
			if e.End() <= t.last {
				return nil
			}
		case e.Seq != t.last+1:
			return fmt.Errorf("%w: task %s: %d comes after %d: %s", errHole, e.Task, e.Seq, t.last, raw)
		case !t.ended.IsZero():
			return fmt.Errorf("%w: task %s goes on behind its end: %s", errHole, e.Task, raw)
		}
		t.last = e.End()
		if e.Body.Kind().Ends() {
			t.ended = time.Now()
			l.count("ends: " + e.Body.Kind().String())
		}
		return nil
	})
}
