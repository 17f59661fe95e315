package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
)

// restStatuses are the HTTP statuses of refusals, as far as the matrix has them.
var restStatuses = map[core.Code]int{core.CodeUnknownAgent: http.StatusNotFound, core.CodeOverloaded: http.StatusServiceUnavailable}

// overREST is an HTTP client that reads the events of its task as JSON lines. They
// are told as they are, with the hub's own codes; a refusal is a problem document.
func overREST() *tongue {
	failed := func(f *core.Fault) telling {
		return telling{End: "failed", Code: string(f.Code), Words: f.Message, Retry: strconv.FormatBool(f.Retryable), Status: http.StatusOK}
	}
	return &tongue{
		name:    "REST",
		connect: func(t *testing.T, s *stage, _ string) requester { return connectREST(t, s) },
		streams: true, data: true, deadlines: true, tells: everything(),
		done:   telling{End: "done", Status: http.StatusOK},
		failed: failed,
		refused: func(f *core.Fault) telling {
			told := failed(f)
			told.End, told.Status = "problem", restStatuses[f.Code]
			return told
		},
		cancelled: func(reason string) telling { return telling{End: "cancelled", Words: reason, Status: http.StatusOK} },
		afterCut:  restAfterCut,
	}
}

// restClient is a client of the REST interface.
type restClient struct{ *webCaller }

// restExchange is a task that a client follows.
type restExchange struct {
	*exchange
	seq    uint64
	cursor core.Cursor
}

func connectREST(t *testing.T, s *stage) *restClient { return &restClient{newWebCaller(t, s)} }

func (c *restClient) begin(q inquiry) *exchange { return c.open(q, true).exchange }

// open asks, and follows the events. A task that is not kept ends with the reader.
func (c *restClient) open(q inquiry, keep bool) *restExchange {
	body := map[string]any{"to": q.to, "content": q.content, "keep": keep}
	if q.data != nil {
		body["data"] = q.data
	}
	if q.deadline > 0 {
		body["deadline_ms"] = q.deadline.Milliseconds()
	}
	x := &restExchange{exchange: newExchange()}
	opened := make(chan string, 1)
	steer := func(ctx context.Context, how string, body any) error {
		select {
		case path := <-opened:
			opened <- path
			return c.steer(ctx, path+how, body)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	x.cancel = func(ctx context.Context, reason string) error {
		return steer(ctx, "/cancel", map[string]string{"reason": reason})
	}
	x.inject = func(ctx context.Context, content string) error {
		return steer(ctx, "/inject", map[string]string{"content": content, "priority": "immediate"})
	}
	x.decide = func(ctx context.Context, approved bool) error {
		return steer(ctx, "/decisions", map[string]any{"id": readScene(q.content).key, "approved": approved})
	}
	c.group.Go(func() {
		c.read(x, http.MethodPost, "/v1/tasks", plainJSON(body), func(location string) {
			x.id = location
			opened <- location
		})
	})
	return x
}

// read makes a request and follows the stream of events that answers it to its end.
func (c *restClient) read(x *restExchange, method, path string, body []byte, opened func(location string)) {
	resp, err := c.do(c.ctx, method, path, client.NDJSON, body)
	if err != nil {
		x.lost(err)
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		x.refused(resp)
		return
	}
	opened(resp.Header.Get("Location"))
	err = client.Follow(resp, func(l client.Line, _ []byte) error {
		if l.Seq != x.seq+1 {
			x.breaks("event %d came behind %d", l.Seq, x.seq)
		}
		x.seq, x.cursor = l.End(), l.Cursor
		x.seesBody(l.Body)
		switch b := l.Body.(type) {
		case core.Assigned:
			x.sees("assigned", "%s", b.Agent)
		case core.Text:
			x.piece(b.Text)
		case core.Done:
			x.end(telling{End: "done", Data: b.Data, Status: resp.StatusCode})
		case core.Failed:
			x.end(telling{End: "failed", Code: string(b.Fault.Code), Words: b.Fault.Message, Retry: strconv.FormatBool(b.Fault.Retryable), Status: resp.StatusCode})
		case core.Cancelled:
			x.end(telling{End: "cancelled", Words: b.Reason, Status: resp.StatusCode})
		}
		return nil
	})
	x.lost(fmt.Errorf("the stream ended without an end: %w", err))
}

// refused reads a problem document.
func (x *restExchange) refused(resp *http.Response) {
	var p struct {
		Status       int
		Code, Detail string
		Retryable    bool
	}
	raw, _ := io.ReadAll(resp.Body) // what came is judged below
	if err := json.Unmarshal(raw, &p); err != nil || p.Status != resp.StatusCode || resp.Header.Get("Content-Type") != "application/problem+json" {
		x.breaks("the status %d came with %s", resp.StatusCode, raw)
	}
	x.end(telling{End: "problem", Code: p.Code, Words: p.Detail, Retry: strconv.FormatBool(p.Retryable), Status: resp.StatusCode})
}

func (c *restClient) steer(ctx context.Context, path string, body any) error {
	resp, err := c.do(ctx, http.MethodPost, path, "application/json", plainJSON(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		raw, _ := io.ReadAll(resp.Body) // it is only shown
		return fmt.Errorf("%s: %d %s", path, resp.StatusCode, raw)
	}
	return nil
}

// restAfterCut cuts off the reader of a task, which runs on and is read further from
// where its cursor stands, and of one that was not to be kept.
func restAfterCut(t *testing.T, d *duo) string {
	first := connectREST(t, d.stage)
	defer first.leave()
	rest := firstHalf + secondHalf
	midway := func(keep bool) (string, *restExchange) {
		t.Helper()
		key := d.key()
		x := first.open(d.inquiry("hang "+key), keep)
		d.await(t, key+d.underway())
		if x.awaitSight(t, "assigned"); d.inPieces() {
			x.hear(t, firstHalf)
			rest = secondHalf
		}
		return key, x
	}
	key, x := midway(true)
	lone, y := midway(false)
	first.cut()
	for _, x := range []*restExchange{x, y} {
		if got := x.outcome(t); got.End != "lost" {
			t.Errorf("got %+v at who was cut off, want the connection lost", got)
		}
	}
	d.dropped(t, lone)
	second := connectREST(t, d.stage)
	defer second.leave()
	z := &restExchange{exchange: newExchange(), seq: x.cursor.Seq}
	second.group.Go(func() {
		second.read(z, http.MethodGet, x.id+"/events?from="+x.cursor.String(), nil, func(string) {})
	})
	d.finished(t, key)
	same(t, z.outcome(t), d.answer(rest))
	return "runs on, resumed"
}
