package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
)

// soakReader reads the events of one task, and checks that each comes once and in order.
type soakReader struct {
	*soak
	task   string
	text   strings.Builder
	cursor string // of the last event
	last   uint64 // its number
	kind   core.Kind
	end    string // byte for byte

	cutAfter int           // so many events; 0 for never
	pause    time.Duration // after each event
	each     func()        // after each event, unless it is nil
}

var errCutHere = errors.New("the reader has left")

// isUnknownTask reports whether the hub does not know the task.
func isUnknownTask(err error) bool {
	f := (*core.Fault)(nil)
	return errors.As(err, &f) && f.Code == core.CodeUnknownTask
}

func (r *soakReader) take(resp *http.Response) error {
	events := 0
	return client.Follow(resp, func(l client.Line, raw []byte) error {
		if l.Shutdown != nil {
			return nil
		}
		if l.Gap != nil {
			return fmt.Errorf("%w: task %s has a gap: %s", errHole, r.task, raw)
		}
		if r.end != "" {
			return fmt.Errorf("%w: task %s goes on behind its end %s: %s", errHole, r.task, r.end, raw)
		}
		if l.Seq != r.last+1 {
			return fmt.Errorf("%w: task %s: %d comes after %d", errHole, r.task, l.Seq, r.last)
		}
		r.last, r.cursor = l.End(), l.Cursor.String()
		switch b := l.Body.(type) {
		case core.Opened:
			r.task = string(b.Task)
		case core.Text:
			r.text.WriteString(b.Text)
		}
		if l.Body.Kind().Ends() {
			r.kind, r.end = l.Body.Kind(), string(raw)
		}
		if r.each != nil {
			r.each()
		}
		if events++; r.cutAfter > 0 && events >= r.cutAfter && r.end == "" {
			return errCutHere
		}
		if r.pause > 0 {
			time.Sleep(r.pause) // the pace of the reader
		}
		return nil
	})
}

// open opens a task and reads it until the stream ends.
func (r *soakReader) open(ctx context.Context, task map[string]any) error {
	resp, err := r.hub.Do(ctx, http.MethodPost, "/v1/tasks", client.NDJSON, task)
	if err != nil {
		return err
	}
	return r.take(resp)
}

// read reads on behind the last event.
func (r *soakReader) read(ctx context.Context) error {
	path := client.TaskPath(core.TaskID(r.task), "events")
	if r.cursor != "" {
		path += "?from=" + r.cursor
	}
	resp, err := r.hub.Do(ctx, http.MethodGet, path, client.NDJSON, nil)
	if err != nil {
		return err
	}
	if resp.StatusCode == http.StatusNoContent { // it had everything
		resp.Body.Close()
		return nil
	}
	return r.take(resp)
}

// readOn reads on, again if the hub cannot read the task now, as from a journal that is too slow.
func (r *soakReader) readOn(ctx context.Context) error {
	for {
		err := r.read(ctx)
		if err == nil || errors.Is(err, errHole) || errors.Is(err, errCutHere) || isUnknownTask(err) || ctx.Err() != nil {
			return err
		}
		r.count("a stream of events was refused or cut: " + err.Error())
		pauseFor(ctx, time.Second)
	}
}

// toEnd opens a task and reads it to its end, from where it was if the reader has left.
func (r *soakReader) toEnd(ctx context.Context, task map[string]any) error {
	err := r.open(ctx, task)
	for r.end == "" && r.task != "" && !errors.Is(err, errHole) && ctx.Err() == nil {
		pauseFor(ctx, rand.N(300*time.Millisecond))
		err = r.readOn(ctx)
	}
	if err == nil && r.end == "" {
		err = fmt.Errorf("the stream of task %s has no end", r.task)
	}
	if err != nil {
		return err
	}
	// Whoever comes later is told the same.
	again := soakReader{soak: r.soak, task: r.task}
	if err := again.readOn(ctx); err != nil {
		return fmt.Errorf("reading task %s again: %w", r.task, err)
	}
	if again.end != r.end || again.text.String() != r.text.String() {
		return fmt.Errorf("%w: a reader of task %s was told %q and %s, a later one %q and %s", errHole, r.task, r.text.String(), r.end, again.text.String(), again.end)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ends = append(r.ends, soakEnd{r.task, r.end}); len(r.ends) > 100 {
		r.ends = append([]soakEnd{}, r.ends[1:]...)
	}
	return nil
}

// askEvents asks over REST and reads the events: at once, slowly, or with breaks.
func (s *soak) askEvents(ctx context.Context, _ *clusterHub, to, key string) (string, error) {
	r := soakReader{soak: s}
	switch rand.IntN(4) {
	case 0:
		r.cutAfter = 1 + rand.IntN(8)
	case 1:
		r.pause = 100 * time.Millisecond
	}
	err := r.toEnd(ctx, map[string]any{"to": to, "content": key})
	if errors.Is(err, errHole) {
		s.wrong("%w", err)
	}
	if err == nil && r.kind != core.KindDone {
		err = errors.New(r.end)
	}
	return r.text.String(), err
}
