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

// restStatuses are the HTTP statuses of refusals in the matrix.
var restStatuses = map[core.Code]int{core.CodeUnknownAgent: http.StatusNotFound, core.CodeOverloaded: http.StatusServiceUnavailable}

// overREST is an HTTP client that reads the events of its task as JSON lines. They have the hub's
// own codes; a refusal is a problem document.
func overREST() *clientDialect {
	failed := func(f *core.Fault) outcome {
		return outcome{End: "failed", Code: string(f.Code), Message: f.Message, Retry: strconv.FormatBool(f.Retryable), Status: http.StatusOK}
	}
	return &clientDialect{
		name:    "REST",
		connect: func(t *testing.T, h *testHub, _ string) requester { return connectREST(t, h) },
		streams: true, data: true, deadlines: true, reports: allReports(),
		done:   outcome{End: "done", Status: http.StatusOK},
		failed: failed,
		refused: func(f *core.Fault) outcome {
			result := failed(f)
			result.End, result.Status = "problem", restStatuses[f.Code]
			return result
		},
		cancelled:  func(reason string) outcome { return outcome{End: "cancelled", Message: reason, Status: http.StatusOK} },
		reconnects: restReconnects,
	}
}

// restClient is a client of the REST interface.
type restClient struct{ *httpClient }

// restExchange is a task that a client follows.
type restExchange struct {
	*exchange
	seq    uint64
	cursor core.Cursor
}

func connectREST(t *testing.T, h *testHub) *restClient { return &restClient{newHTTPClient(t, h)} }

func (c *restClient) begin(q query) *exchange { return c.open(q, true).exchange }

// open opens a task and follows its events. A task that is not kept is cancelled with its reader.
func (c *restClient) open(q query, keep bool) *restExchange {
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
		return steer(ctx, "/decisions", map[string]any{"id": parseInstruction(q.content).key, "approved": approved})
	}
	c.group.Go(func() {
		c.read(x, http.MethodPost, "/v1/tasks", plainJSON(body), func(location string) {
			x.id = location
			opened <- location
		})
	})
	return x
}

// read sends a request and reads the stream of events to its end.
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
			x.violates("event %d arrived after %d", l.Seq, x.seq)
		}
		x.seq, x.cursor = l.End(), l.Cursor
		x.reportBody(l.Body)
		switch b := l.Body.(type) {
		case core.Assigned:
			x.report("assigned", "%s", b.Agent)
		case core.Text:
			x.addText(b.Text)
		case core.Done:
			x.end(outcome{End: "done", Data: b.Data, Status: resp.StatusCode})
		case core.Failed:
			x.end(outcome{End: "failed", Code: string(b.Fault.Code), Message: b.Fault.Message, Retry: strconv.FormatBool(b.Fault.Retryable), Status: resp.StatusCode})
		case core.Cancelled:
			x.end(outcome{End: "cancelled", Message: b.Reason, Status: resp.StatusCode})
		}
		return nil
	})
	x.lost(fmt.Errorf("the stream ended without an end event: %w", err))
}

// refused reads a problem document.
func (x *restExchange) refused(resp *http.Response) {
	var p struct {
		Status       int
		Code, Detail string
		Retryable    bool
	}
	raw, _ := io.ReadAll(resp.Body) // checked below
	if err := json.Unmarshal(raw, &p); err != nil || p.Status != resp.StatusCode || resp.Header.Get("Content-Type") != "application/problem+json" {
		x.violates("the status %d came with %s", resp.StatusCode, raw)
	}
	x.end(outcome{End: "problem", Code: p.Code, Message: p.Detail, Retry: strconv.FormatBool(p.Retryable), Status: resp.StatusCode})
}

func (c *restClient) steer(ctx context.Context, path string, body any) error {
	resp, err := c.do(ctx, http.MethodPost, path, "application/json", plainJSON(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		raw, _ := io.ReadAll(resp.Body) // only shown
		return fmt.Errorf("%s: %d %s", path, resp.StatusCode, raw)
	}
	return nil
}

// restReconnects cuts off the reader of a task, which continues and is resumed from its cursor, and
// that of a task that is not kept.
func restReconnects(t *testing.T, d *pair) string {
	first := connectREST(t, d.testHub)
	defer first.leave()
	rest := firstHalf + secondHalf
	midway := func(keep bool) (string, *restExchange) {
		t.Helper()
		key := d.key()
		x := first.open(d.query("hang "+key), keep)
		d.await(t, key+d.startedSignal())
		if x.waitReport(t, "assigned"); d.streamed() {
			x.waitText(t, firstHalf)
			rest = secondHalf
		}
		return key, x
	}
	key, x := midway(true)
	lone, y := midway(false)
	first.cut()
	for _, x := range []*restExchange{x, y} {
		if got := x.wait(t); got.End != "lost" {
			t.Errorf("got %+v, want the connection lost", got)
		}
	}
	d.wantCancelled(t, lone)
	second := connectREST(t, d.testHub)
	defer second.leave()
	z := &restExchange{exchange: newExchange(), seq: x.cursor.Seq}
	second.group.Go(func() {
		second.read(z, http.MethodGet, x.id+"/events?from="+x.cursor.String(), nil, func(string) {})
	})
	d.finish(t, key)
	wantResult(t, z.wait(t), d.wantAnswer(rest))
	return "runs on, resumed"
}
