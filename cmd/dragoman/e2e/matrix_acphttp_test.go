package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	acpwire "github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
)

// acpStatuses are the HTTP statuses of ACP's codes.
var acpStatuses = map[string]int{
	"invalid_envelope": 400, "not_authorized": 403, "peer_not_found": 404, "unknown_domain": 404, "unknown_kind": 400, "unsupported": 422,
	"overloaded": 503, "rate_limited": 429, "too_large": 413, "timeout": 504, "cancelled": 409, "conflict": 409, "loop": 508, "budget": 429,
	"internal": 500,
}

// acpOverHTTP is ACP for peers that have only HTTP: a POST waits for its answer, and later
// envelopes are read from GET.
func acpOverHTTP() *clientDialect {
	failed := func(f *core.Fault) outcome {
		result := acpError(f)
		result.Status = acpStatuses[result.Code]
		if f.Code == core.CodeUnreachable {
			result.Status = http.StatusBadGateway
		}
		return result
	}
	return &clientDialect{
		name:    "ACP HTTP",
		connect: func(t *testing.T, h *testHub, id string) requester { return connectACPPoster(t, h, id) },
		data:    true, deadlines: true, reports: map[string]func([]string) []string{"usage": sum, "file": keepAll},
		done: outcome{End: "response", Status: http.StatusOK}, reported: outcome{End: "result completed"},
		failed: failed, refused: failed,
		cancelled:  func(reason string) outcome { return failed(core.NewFault(core.CodeCancelled, "%s", reason)) },
		reconnects: acpHTTPReconnects,
	}
}

// httpClient sends HTTP requests through a proxy, each on a connection of its own.
type httpClient struct {
	proxy *proxy
	base  string
	http  *http.Client
	ctx   context.Context //nolint:containedctx // the life of the requests, which leave ends
	stop  context.CancelFunc
	group sync.WaitGroup
}

func newHTTPClient(t *testing.T, h *testHub) *httpClient {
	c := newProxy(t, h.service.Addresses().HTTP)
	ctx, stop := context.WithCancel(context.Background())
	return &httpClient{
		proxy: c, base: "http://" + c.addr(), ctx: ctx, stop: stop,
		http: &http.Client{Transport: bearer{&http.Transport{DisableKeepAlives: true}, tokenFor(h.service.Addresses().HTTP)}},
	}
}

// do sends a request. accept is the media type of the answer; body is JSON or empty.
func (c *httpClient) do(ctx context.Context, method, path, accept string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", accept)
	return c.http.Do(r)
}

func (c *httpClient) cut() {
	c.proxy.cut()
	c.group.Wait()
}

func (c *httpClient) leave() {
	c.stop()
	c.group.Wait()
}

// acpPoster is a peer that has only HTTP.
type acpPoster struct {
	*httpClient
	id string
}

func connectACPPoster(t *testing.T, h *testHub, id string) *acpPoster {
	return &acpPoster{newHTTPClient(t, h), id}
}

// post sends an envelope and returns the one that answers it.
func (p *acpPoster) post(ctx context.Context, e acpwire.Envelope) (acpwire.Envelope, int, error) {
	resp, err := p.do(ctx, http.MethodPost, "/acp", "application/json", e.Encode())
	if err != nil {
		return acpwire.Envelope{}, 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return acpwire.Envelope{}, 0, err
	}
	answer, err := acpwire.Decode(body, client.MaxACPBytes)
	if err == nil {
		err = answer.Check()
	}
	if err == nil && answer.Ref != e.ID {
		err = fmt.Errorf("the answer is to %q, not to %q", answer.Ref, e.ID)
	}
	return answer, resp.StatusCode, err
}

func (p *acpPoster) begin(q query) *exchange {
	e := acpRequest(p.id, q)
	x := newExchange()
	x.id = e.ID
	x.cancel = func(ctx context.Context, reason string) error {
		answer, status, err := p.post(ctx, acpCancel(p.id, e.ID, reason))
		if err != nil {
			return err
		}
		result, _, err := acpResult(answer)
		if err == nil && (result.End != acpCancelled || status != http.StatusOK) {
			err = fmt.Errorf("the cancel was answered by %d and %+v", status, result)
		}
		return err
	}
	x.inject = func(ctx context.Context, content string) error {
		resp, err := p.do(ctx, http.MethodPost, "/acp", "application/json", acpContext(p.id, e.ID, content).Encode())
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode >= 300 {
			return fmt.Errorf("the context was answered by %s", resp.Status)
		}
		return nil
	}
	p.group.Go(func() {
		answer, status, err := p.post(p.ctx, e)
		var result outcome
		if err == nil {
			result, _, err = acpResult(answer)
		}
		if err != nil {
			x.lost(err)
			return
		}
		result.Status = status
		x.reportEnvelope(answer)
		x.end(result)
	})
	return x
}

// result reads the stream until the result of a delegate arrives.
func (p *acpPoster) result(t *testing.T, ref string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	resp, err := p.do(ctx, http.MethodGet, "/acp?agent_id="+p.id, "text/event-stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 2*client.MaxACPBytes)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		e, err := acpwire.Decode([]byte(data), client.MaxACPBytes)
		if err != nil {
			t.Fatal(err)
		}
		if e.Ref == ref {
			result, _, err := acpResult(e)
			if err != nil {
				t.Fatal(err)
			}
			return result
		}
	}
	t.Fatalf("got the end of the stream (%v), want the result", lines.Err())
	return outcome{}
}

// acpHTTPReconnects closes the connection of a query, which cancels it. A delegate does not need
// its connection: the result is read later.
func acpHTTPReconnects(t *testing.T, d *pair) string {
	first := connectACPPoster(t, d.testHub, "phoenix")
	defer first.leave()
	queried, x := d.startHalf(t, first, query{})
	task, y := d.startHalf(t, first, query{delegate: true})
	wantResult(t, y.wait(t), outcome{End: acpCancelled, Status: http.StatusOK})
	first.cut()
	if got := x.wait(t); got.End != "lost" {
		t.Errorf("got %+v, want the connection lost", got)
	}
	d.wantCancelled(t, queried)
	d.finish(t, task)
	want := d.asks.reported
	want.Text = firstHalf + secondHalf
	second := connectACPPoster(t, d.testHub, "phoenix")
	defer second.leave()
	wantResult(t, second.result(t, y.id), want)
	return "query cancelled, result kept"
}
