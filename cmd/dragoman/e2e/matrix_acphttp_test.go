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

// acpStatuses are the HTTP statuses of the codes of ACP.
var acpStatuses = map[string]int{
	"invalid_envelope": 400, "not_authorized": 403, "peer_not_found": 404, "unknown_domain": 404, "unknown_kind": 400, "unsupported": 422,
	"overloaded": 503, "rate_limited": 429, "too_large": 413, "timeout": 504, "cancelled": 409, "conflict": 409, "loop": 508, "budget": 429,
	"internal": 500,
}

// acpOverHTTP is ACP for peers that have only HTTP: a POST is held until its answer,
// and what comes later is read from GET.
func acpOverHTTP() *tongue {
	failed := func(f *core.Fault) telling {
		told := acpError(f)
		told.Status = acpStatuses[told.Code]
		if f.Code == core.CodeUnreachable {
			told.Status = http.StatusBadGateway
		}
		return told
	}
	return &tongue{
		name:    "ACP HTTP",
		connect: func(t *testing.T, s *stage, id string) requester { return connectACPPoster(t, s, id) },
		data:    true, deadlines: true, tells: map[string]func([]string) []string{"usage": summed, "file": all},
		done: telling{End: "response", Status: http.StatusOK}, reported: telling{End: "result completed"},
		failed: failed, refused: failed,
		cancelled: func(reason string) telling { return failed(core.NewFault(core.CodeCancelled, "%s", reason)) },
		afterCut:  acpHTTPAfterCut,
	}
}

// webCaller makes HTTP requests through a cable, each on a connection of its own.
type webCaller struct {
	cable *cable
	base  string
	http  *http.Client
	ctx   context.Context //nolint:containedctx // the life of the requests, which leave ends
	stop  context.CancelFunc
	group sync.WaitGroup
}

func newWebCaller(t *testing.T, s *stage) *webCaller {
	c := lay(t, s.service.Addresses().HTTP)
	ctx, stop := context.WithCancel(context.Background())
	return &webCaller{
		cable: c, base: "http://" + c.addr(), ctx: ctx, stop: stop,
		http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	}
}

// do makes a request. accept is the form of the answer, body JSON or nothing.
func (c *webCaller) do(ctx context.Context, method, path, accept string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", accept)
	return c.http.Do(r)
}

func (c *webCaller) cut() {
	c.cable.cut()
	c.group.Wait()
}

func (c *webCaller) leave() {
	c.stop()
	c.group.Wait()
}

// acpPoster is a peer that has only HTTP.
type acpPoster struct {
	*webCaller
	id string
}

func connectACPPoster(t *testing.T, s *stage, id string) *acpPoster {
	return &acpPoster{newWebCaller(t, s), id}
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

func (p *acpPoster) begin(q inquiry) *exchange {
	e := acpQuestion(p.id, q)
	x := newExchange()
	x.id = e.ID
	x.cancel = func(ctx context.Context, reason string) error {
		answer, status, err := p.post(ctx, acpCancel(p.id, e.ID, reason))
		if err != nil {
			return err
		}
		told, _, err := acpTelling(answer)
		if err == nil && (told.End != acpCancelled || status != http.StatusOK) {
			err = fmt.Errorf("the cancel was answered by %d and %+v", status, told)
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
		var told telling
		if err == nil {
			told, _, err = acpTelling(answer)
		}
		if err != nil {
			x.lost(err)
			return
		}
		told.Status = status
		x.seesWhole(answer)
		x.end(told)
	})
	return x
}

// result reads from the stream of what arrives until the result of a delegate does.
func (p *acpPoster) result(t *testing.T, ref string) telling {
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
			told, _, err := acpTelling(e)
			if err != nil {
				t.Fatal(err)
			}
			return told
		}
	}
	t.Fatalf("got the end of the stream (%v), want the result", lines.Err())
	return telling{}
}

// acpHTTPAfterCut hangs up on a query, which ends it. A delegate needs nobody to
// wait for it: its result is read later.
func acpHTTPAfterCut(t *testing.T, d *duo) string {
	first := connectACPPoster(t, d.stage, "phoenix")
	defer first.leave()
	query, x := d.midway(t, first, inquiry{})
	task, y := d.midway(t, first, inquiry{delegate: true})
	same(t, y.outcome(t), telling{End: acpCancelled, Status: http.StatusOK})
	first.cut()
	if got := x.outcome(t); got.End != "lost" {
		t.Errorf("got %+v at who was cut off, want the connection lost", got)
	}
	d.dropped(t, query)
	d.finished(t, task)
	want := d.asks.reported
	want.Text = firstHalf + secondHalf
	second := connectACPPoster(t, d.stage, "phoenix")
	defer second.leave()
	same(t, second.result(t, y.id), want)
	return "query cancelled, result kept"
}
