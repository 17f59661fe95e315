package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/timer"
)

// item is something that the remote says about a task.
type item struct {
	wire.StreamResponse
	// cursor is the place after the item, of remotes with our extension.
	cursor string
}

// source is where what the remote says comes from: a stream of events, or polling. One
// goroutine uses it.
type source interface {
	// next returns the next item. Its error is errCut where the remote may be asked again, and
	// else why the task cannot go on.
	next(ctx context.Context) (item, error)
	close()
}

// errCut is the error of a source that ended, maybe before the task.
var errCut = errors.New("the connection ended before the task")

// maxGarbage is how many events in a row that cannot be read a stream may have.
const maxGarbage = 1000

// events is a stream of events.
type events struct {
	agent  *Agent
	remote *remote
	end    endpoint
	body   io.ReadCloser
	reader *eventReader
	items  wire.ItemReader
	// garbage counts the events in a row that could not be read, skipped all of them.
	garbage, skipped int
}

func (a *Agent) events(r *remote, resp response) *events {
	return &events{agent: a, remote: r, end: resp.end, body: resp.body, reader: newEventReader(resp.body, maxEventBytes)}
}

func (s *events) close() { _ = s.body.Close() }

func (s *events) next(ctx context.Context) (item, error) {
	for {
		data, err := s.reader.next()
		switch {
		case ctx.Err() != nil:
			return item{}, context.Cause(ctx)
		case errors.Is(err, errLongEvent):
			return item{}, core.NewFault(core.CodeTooLarge, "the remote agent sent an event of more than %d bytes", maxEventBytes)
		case err != nil:
			return item{}, errCut
		}
		s.agent.answered()
		frame.TurnOf(ctx).Received(data)
		v, err := s.result(data)
		if err == nil {
			var it item
			if it, err = readItem(&s.items, v); err == nil {
				s.garbage = 0
				return it, nil
			}
		}
		var refused *wire.Error
		var fault *core.Fault
		if errors.As(err, &refused) || errors.As(err, &fault) {
			return item{}, err
		}
		s.agent.opts.Count("a2a.agent.unreadable")
		s.agent.opts.Log.Warn("the remote agent sent an event that cannot be read", "url", withoutQuery(s.end.url), "error", short(err.Error()))
		s.skipped++
		if s.garbage++; s.garbage >= maxGarbage {
			return item{}, core.NewFault(core.CodeInternal, "the remote agent sent %d events in a row that cannot be read, the last since %s", maxGarbage, short(err.Error()))
		}
	}
}

// result returns the item in the data of an event, or the error that it is.
func (s *events) result(data []byte) (strictjson.Value, error) {
	if s.end.rest {
		v, err := wire.Parse(data)
		if err == nil && v.Get("error").Kind() == strictjson.Object {
			err = wire.ReadErrorBody(errorStatus(v), data)
		}
		return v, err
	}
	m, wrong := jsonrpc.Read(data, wire.Limits)
	switch {
	case wrong != nil:
		return strictjson.Value{}, wrong
	case m.Kind() != jsonrpc.Response:
		return strictjson.Value{}, errors.New("want a response, got the method " + strconv.Quote(short(m.Method)))
	case m.Err != nil:
		return strictjson.Value{}, rpcError(0, m.Err)
	}
	return m.Result, nil
}

// errorStatus returns the code of an error of the HTTP+JSON binding, which is an HTTP status.
func errorStatus(v strictjson.Value) (status int) {
	_ = v.Get("error", "code").Decode(&status) // 0 says nothing
	return status
}

// readItem reads an item. One that lacks something which the hub does not need is used. Its
// error is a Fault for an item of A2A 0.3.
func readItem(from *wire.ItemReader, v strictjson.Value) (item, error) {
	r, err := from.Read(v)
	n := 0
	for _, there := range []bool{r.Task != nil, r.Message != nil, r.StatusUpdate != nil, r.ArtifactUpdate != nil} {
		if there {
			n++
		}
	}
	switch {
	case n == 0 && legacy(v) != "":
		return item{}, core.NewFault(core.CodeUnsupported, "the remote agent cannot be understood%s", legacy(v))
	case err != nil && n != 1:
		return item{}, err
	}
	it := item{StreamResponse: r}
	switch {
	case r.StatusUpdate != nil:
		it.cursor = takeCursor(v, "statusUpdate", &r.StatusUpdate.Metadata)
	case r.ArtifactUpdate != nil:
		it.cursor = takeCursor(v, "artifactUpdate", &r.ArtifactUpdate.Metadata)
	case r.Task != nil:
		it.cursor = takeCursor(v, "task", &r.Task.Metadata)
	}
	return it, nil
}

// takeCursor takes the cursor out of the metadata of an item, which is in v under a name.
func takeCursor(v strictjson.Value, name string, metadata *json.RawMessage) string {
	if *metadata == nil {
		return ""
	}
	v = v.Get(name, "metadata")
	cursor, ok := v.Get(wire.CursorExtension).Text()
	if !ok {
		return ""
	}
	if *metadata = nil; v.Len() > 1 {
		*metadata, _ = v.Without(wire.CursorExtension)
	}
	return cursor
}

// polling asks for a task again and again, with a pause that grows while nothing changes.
type polling struct {
	agent  *Agent
	remote *remote
	id     string
	// first is what the remote has answered already; nil if it was not asked yet.
	first  *item
	again  timer.Pace
	last   time.Time // of the status
	failed int       // in a row
}

func newPolling(a *Agent, r *remote, id string) *polling {
	p := &polling{agent: a, remote: r, id: id, again: a.opts.pace()}
	p.again.Begin()
	return p
}

func (p *polling) close() {}

// maxPollFailures is how many polls in a row may fail.
const maxPollFailures = 5

func (p *polling) next(ctx context.Context) (item, error) {
	if p.first != nil {
		it := *p.first
		p.first = nil
		return it, nil
	}
	for {
		if err := p.again.Wait(ctx); err != nil {
			return item{}, err
		}
		t, err := p.agent.getTask(ctx, p.remote, p.id)
		var refused *wire.Error
		switch {
		case err == nil:
			if p.failed = 0; !t.Status.At.Equal(p.last) {
				p.again.Begin()
				p.last = t.Status.At
			}
			return item{StreamResponse: wire.StreamResponse{Task: &t}}, nil
		case ctx.Err() != nil:
			return item{}, context.Cause(ctx)
		case errors.As(err, &refused) && refused.Status < 500:
			return item{}, err
		}
		if p.failed++; p.failed >= maxPollFailures {
			return item{}, err
		}
	}
}

// once is a source of one item, which the remote answered in place of a stream.
type once struct{ it *item }

func (o *once) close() {}

func (o *once) next(context.Context) (item, error) {
	if o.it == nil {
		return item{}, errCut
	}
	it := *o.it
	o.it = nil
	return it, nil
}
