package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
)

// clusterReader reads the events of one task at one hub after another, from where it was.
type clusterReader struct {
	task   core.TaskID
	cursor string // of the last event
	last   uint64 // its number
	gap    *client.Gap
	end    string // the end of the task, byte for byte; "" as long as it has none
	each   func() // called for each event, unless it is nil
}

// errHole is the error of a stream that leaves out an event without saying so.
var errHole = errors.New("an event is missing")

// take takes the lines of a stream until it ends.
func (r *clusterReader) take(resp *http.Response) error {
	return client.Follow(resp, func(l client.Line, raw []byte) error {
		if l.Gap != nil {
			r.gap = l.Gap
		}
		if l.Shutdown != nil || l.Gap != nil {
			return nil
		}
		if b, ok := l.Body.(core.Opened); ok {
			r.task = b.Task
		}
		// What a hub that died had not stored counts no more: its numbers begin again in the gap.
		again := r.gap != nil && l.Seq >= r.gap.From && l.Seq <= r.gap.To+1
		if r.last != 0 && l.Seq != r.last+1 && !again {
			return fmt.Errorf("%w: task %s: %d comes after %d, with the gap %+v", errHole, r.task, l.Seq, r.last, r.gap)
		}
		r.last, r.cursor, r.gap = l.End(), l.Cursor.String(), nil
		if r.each != nil {
			r.each()
		}
		if l.Body.Kind().Ends() {
			r.end = string(raw)
		}
		return nil
	})
}

// open opens a task at a hub and reads it there.
func (r *clusterReader) open(ctx context.Context, h *clusterHub, task map[string]string) error {
	resp, err := h.Do(ctx, http.MethodPost, "/v1/tasks", client.NDJSON, task)
	if err != nil {
		return err
	}
	return r.take(resp)
}

// read reads the task at a hub, until the stream ends.
func (r *clusterReader) read(ctx context.Context, h *clusterHub) error {
	path := client.TaskPath(r.task, "events")
	if r.cursor != "" {
		path += "?from=" + r.cursor
	}
	resp, err := h.Do(ctx, http.MethodGet, path, client.NDJSON, nil)
	if err != nil {
		return err
	}
	if resp.StatusCode == http.StatusNoContent { // it had everything
		resp.Body.Close()
		return nil
	}
	return r.take(resp)
}

// readToEnd reads the task at one hub after another until it has its end.
func (r *clusterReader) readToEnd(ctx context.Context, hubs ...*clusterHub) error {
	for i := 0; ; i++ {
		err := r.read(ctx, hubs[i%len(hubs)])
		if r.end != "" || errors.Is(err, errHole) {
			return err
		}
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
		pauseFor(ctx, betweenTries)
	}
}

// askREST asks, and reads the task to its end, wherever it can be read.
func (l *clusterLoad) askREST(ctx context.Context, h *clusterHub, to, key string) error {
	var r clusterReader
	err := r.open(ctx, h, map[string]string{"to": to, "content": key})
	if r.task != "" && r.end == "" && !errors.Is(err, errHole) {
		err = r.readToEnd(ctx, l.hubs...)
	}
	if errors.Is(err, errHole) {
		l.note(told{dialect: "rest", key: key, task: r.task, end: err.Error()})
	}
	if r.end != "" {
		l.note(told{dialect: "rest", key: key, task: r.task, end: r.end})
	}
	return err
}

// storedTask is a task as the hubs have it.
type storedTask struct {
	id   core.TaskID
	text string   // of the answer, if it is done
	ends []string // its end at each hub, byte for byte
}

// tasks calls add for all tasks that are listed at a hub; a state of "" is any.
func (h *clusterHub) tasks(state string, add func(id core.TaskID, content string)) {
	h.t.Helper()
	type list struct {
		Tasks []struct {
			ID      core.TaskID
			Content string
		}
		Before  string
		Missing []string
	}
	for before := ""; ; {
		var page list
		h.until("the list is that of all hubs", func() error { // one may have stood still on a busy machine
			page = list{}
			err := h.Get(h.t.Context(), "/v1/tasks?limit=500&state="+state+"&before="+before, &page)
			return cmp.Or(err, notYet(len(page.Missing) == 0, fmt.Sprintf("it misses what only %q know", page.Missing)))
		})
		for _, t := range page.Tasks {
			add(t.ID, t.Content)
		}
		if before = page.Before; before == "" {
			return
		}
	}
}

// running returns the tasks that the lists of some hub show as not ended.
func (c hubCluster) running() (all []core.TaskID) {
	for _, h := range c {
		for _, state := range []string{"queued", "running"} {
			h.tasks(state, func(id core.TaskID, _ string) { all = append(all, id) })
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// stored returns all tasks, each of which has ended, by their contents. It reads each at every hub.
func (c hubCluster) stored(t *testing.T) map[string][]storedTask {
	contents := map[core.TaskID]string{}
	for _, h := range c {
		h.tasks("", func(id core.TaskID, content string) { contents[id] = content })
	}
	ids := slices.Collect(maps.Keys(contents))
	read := make([]*storedTask, len(ids))
	c[0].until("the tasks can be read at all hubs", func() error {
		var mu sync.Mutex
		var reading sync.WaitGroup
		var failed error
		room := make(chan struct{}, 16)
		for i, id := range ids {
			if read[i] != nil {
				continue
			}
			room <- struct{}{}
			reading.Go(func() {
				defer func() { <-room }()
				one, err := c.storedTask(t.Context(), id)
				if err == nil {
					read[i] = &one
					return
				}
				mu.Lock()
				defer mu.Unlock()
				failed = err
			})
		}
		reading.Wait()
		return failed
	})
	all := map[string][]storedTask{}
	for i, id := range ids {
		all[contents[id]] = append(all[contents[id]], *read[i])
	}
	return all
}

// describe returns what each hub says of a task, and the events that it shows.
func (c hubCluster) describe(ctx context.Context, id core.TaskID) (all string) {
	ctx, cancel := context.WithTimeout(ctx, client.ResponseTimeout)
	defer cancel()
	for _, h := range c {
		var status, readers json.RawMessage
		err := cmp.Or(h.Get(ctx, "/v1/tasks/"+string(id), &status), h.Get(ctx, client.TaskPath(id, "readers"), &readers))
		all += fmt.Sprintf("\nat %s: %s, readers %s, %v", h.name, status, readers, err)
		r := clusterReader{task: id}
		r.each = func() { all += fmt.Sprintf("; up to %d", r.last) }
		short, cancel := context.WithTimeout(ctx, time.Second)
		_ = r.read(short, h) // it does not end
		cancel()
	}
	return all
}

// storedTask reads a task at every hub.
func (c hubCluster) storedTask(ctx context.Context, id core.TaskID) (t storedTask, err error) {
	t.id = id
	for _, h := range c {
		r := clusterReader{task: id}
		err := r.read(ctx, h)
		if f := (*core.Fault)(nil); errors.As(err, &f) && f.Code == core.CodeUnknownTask {
			continue
		}
		if err != nil {
			return t, fmt.Errorf("reading task %s at %s: %w", id, h.name, err)
		}
		t.ends = append(t.ends, r.end)
	}
	if len(t.ends) == 0 || !strings.Contains(t.ends[0], `"kind":"done"`) {
		return t, nil
	}
	var task struct{ Answer struct{ Text string } }
	err = c[0].Get(ctx, "/v1/tasks/"+string(id), &task)
	t.text = task.Answer.Text
	return t, err
}

// neverStored is in the end of a task whose hub died before it had stored anything. If that hub had opened it
// itself, only the hubs where somebody has asked for it know it.
const neverStored = "has stored nothing of it"

// noContent is the content of a task whose owner has refused it: it keeps none.
const noContent = ""

// contradictions compares what clients were told with what is stored.
func contradictions(hubs int, all []told, stored map[string][]storedTask) (wrong []string) {
	for key, same := range stored {
		for _, t := range same {
			switch {
			case len(t.ends) == 0: // it was never stored, and the hub that was asked has let go of it
			case len(t.ends) < hubs && !strings.Contains(t.ends[0], neverStored):
				wrong = append(wrong, fmt.Sprintf("task %s (%s) is unknown at a hub, and elsewhere it ends as %q", t.id, key, t.ends))
			case t.ends[0] == "" || slices.ContainsFunc(t.ends, func(end string) bool { return end != t.ends[0] }):
				wrong = append(wrong, fmt.Sprintf("task %s (%s) ends as %q", t.id, key, t.ends))
			}
		}
	}
	for _, a := range all {
		if !strings.Contains(a.end, neverStored) && !a.isIn(stored[a.key]) && !a.isIn(stored[noContent]) {
			wrong = append(wrong, fmt.Sprintf("a client of %s was told %+v, and stored is %+v", a.dialect, a, stored[a.key]))
		}
	}
	return wrong
}

// isIn reports whether one of the tasks of a question is as the client was told.
func (a told) isIn(tasks []storedTask) bool {
	for _, t := range tasks {
		if a.end != "" && a.task == t.id && slices.Contains(t.ends, a.end) || a.end == "" && strings.TrimSpace(a.text) == strings.TrimSpace(t.text) {
			return true
		}
	}
	return false
}
