package pack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/timer"
)

const (
	// maxResumed is how often a stream is resumed that brings nothing new.
	maxResumed = 5
	// The pauses before a stream is resumed, unless the server wants longer ones.
	firstResume  = 100 * time.Millisecond
	seldomResume = time.Second
)

// follow reads a stream until the response to the request. A legacy stream with event ids
// that is cut, or that the server ends early, is resumed with GET.
func (t *remote) follow(ctx context.Context, resp *http.Response, r request, cancel func()) (jsonrpc.Message, error) {
	lastID, idle := "", 0
	again := timer.Pace{First: firstResume, Most: seldomResume}
	for again.Begin(); ; {
		stream := wire.NewEvents(resp.Body, t.limit(r))
		m, found, err := t.readStream(stream, r)
		if found {
			finish(resp, cancel)
			return m, nil
		}
		if ctx.Err() != nil || errors.Is(err, wire.ErrTooLarge) || t.server.era().modern || stream.LastID == "" && lastID == "" {
			return m, t.unreadable(ctx, r, err)
		}
		if idle++; stream.LastID != "" && stream.LastID != lastID {
			lastID, idle = stream.LastID, 0
		}
		if idle >= maxResumed {
			return m, t.unreadable(ctx, r, err)
		}
		resp.Body.Close()
		if !sleep(ctx, max(stream.Retry, again.Next())) {
			return m, context.Cause(ctx)
		}
		next, err := t.get(ctx, lastID) //nolint:bodyclose // it becomes resp, whose body the caller closes
		if err != nil {
			return m, t.unreachable(ctx, err)
		}
		*resp = *next // the caller closes the body of resp
		if next.StatusCode == http.StatusOK {
			continue
		}
		if m, err = t.refused(next, r); errors.Is(err, errExpired) {
			err = t.unreadable(ctx, r, errors.New("its session is gone")) // the server took the request
		}
		return m, err
	}
}

// readStream passes on what a stream brings, and returns the response to the request.
func (t *remote) readStream(stream *wire.Events, r request) (jsonrpc.Message, bool, error) {
	for {
		data, err := stream.Next()
		if err != nil {
			return jsonrpc.Message{}, false, err
		}
		if len(data) == 0 {
			continue // an event that only has an id, to resume from
		}
		m, fault := jsonrpc.Read(data, strictjson.Limits{})
		switch {
		case fault != nil:
			t.server.trouble("garbage", "the MCP server sent an event that is no message: it was skipped", "why", fault.Message)
		case m.Kind() != jsonrpc.Response:
			t.server.receive(m, r.call)
		case r.id != nil && bytes.Equal(m.ID, r.id):
			return m, true, nil
		default:
			t.server.count("ignored.response")
		}
	}
}

// finishTime is how long a server may take to end a stream after its response, so that the
// connection can be used again.
const finishTime = 20 * time.Millisecond

func finish(resp *http.Response, cancel func()) {
	late := time.AfterFunc(finishTime, cancel)
	defer late.Stop()
	_, _ = io.CopyN(io.Discard, resp.Body, 1<<10)
}

// get opens a stream, after the event with the id lastID if there is one.
func (t *remote) get(ctx context.Context, lastID string) (*http.Response, error) {
	headers := map[string]string{"Accept": "text/event-stream"}
	if lastID != "" {
		headers["Last-Event-ID"] = lastID
	}
	return t.do(ctx, http.MethodGet, nil, request{}, headers)
}

// errNoStream says that a server has no stream of changes.
var errNoStream = errors.New("the server has no stream of changes")

// listen reads what belongs to no request: the subscription of a modern server, the GET stream of a
// legacy one (2025-11-25, basic/transports, "Listening for Messages from the Server").
func (t *remote) listen(ctx context.Context) error {
	if t.server.era().modern {
		return t.server.subscribe(ctx)
	}
	begun := t.sessions.count()
	resp, err := t.get(ctx, "")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case t.mayHaveForgotten(resp):
		return t.reassure(ctx, begun)
	case resp.StatusCode >= http.StatusInternalServerError:
		return fmt.Errorf("answered %s", resp.Status)
	case resp.StatusCode != http.StatusOK || media != "text/event-stream":
		return errNoStream
	}
	if t.server.era().changes {
		t.server.toolsChanged() // what changed before was not told
	}
	_, _, err = t.readStream(wire.NewEvents(resp.Body, t.limit(request{})), request{})
	return err
}
