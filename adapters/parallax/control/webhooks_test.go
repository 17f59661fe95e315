package control_test

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/control"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/webhook"
)

// received is a delivery at its target.
type received struct {
	at     time.Time
	header http.Header
	body   []byte
}

// target is an HTTP server in memory. It answers with the statuses in turn, and the last
// of them from then on.
type target struct {
	statuses []int

	mu         sync.Mutex
	deliveries []received
}

// dial connects to the target, whatever the address.
func (g *target) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		r, err := http.ReadRequest(bufio.NewReader(server))
		if err != nil {
			return
		}
		body, _ := io.ReadAll(r.Body) // a truncated body fails its signature
		g.mu.Lock()
		defer g.mu.Unlock()
		g.deliveries = append(g.deliveries, received{time.Now(), r.Header, body})
		status := g.statuses[min(len(g.deliveries), len(g.statuses))-1]
		answer := http.Response{StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Close: true, Header: http.Header{"Location": {"http://127.0.0.1/"}}}
		_ = answer.Write(server) // the client may have gone
	}()
	return client, nil
}

func (g *target) options() control.Options {
	return control.Options{Targets: webhook.TargetsAny, Transport: &http.Transport{DialContext: g.dial, DisableKeepAlives: true}}
}

func TestDeliveriesAreSignedAndRetriedUntilAccepted(t *testing.T) {
	g := &target{statuses: []int{500, 302, 204}}
	withControl(t, g.options(), func(f *fixture) {
		b := f.start(`{"capability":"shouting","input":"hello","webhook":{"url":"http://hooks.example/x","secret":"hush"}}`)
		if !b.WebhookConfigured {
			f.Errorf("got %+v, want the webhook configured", b)
		}
		began := time.Now()
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(g.deliveries) != 3 {
			f.Fatalf("got %d deliveries, want 3, the last accepted", len(g.deliveries))
		}
		for i, want := range []time.Duration{0, time.Minute, 6 * time.Minute} {
			h := g.deliveries[i]
			if got := h.at.Sub(began); got != want {
				f.Errorf("delivery %d: got it after %s, want %s", i, got, want)
			}
			mac := hmac.New(sha256.New, []byte("hush"))
			mac.Write([]byte(h.header.Get("X-Parallax-Timestamp") + "." + string(h.body)))
			if got, want := h.header.Get("X-Parallax-Signature"), "sha256="+hex.EncodeToString(mac.Sum(nil)); got != want {
				f.Errorf("delivery %d: got the signature %s, want %s", i, got, want)
			}
			if got := h.header.Get("X-Parallax-Retry-Count"); got != []string{"", "1", "2"}[i] {
				f.Errorf("delivery %d: got retry %q", i, got)
			}
		}
		var event struct {
			ID, Type string
			Data     struct {
				ExecutionID core.TaskID     `json:"executionId"`
				Result      json.RawMessage `json:"result"`
			}
		}
		if err := json.Unmarshal(g.deliveries[2].body, &event); err != nil || event.Type != "execution.completed" || event.Data.ExecutionID != b.ID || string(event.Data.Result) != `"HELLO"` {
			f.Errorf("got %s and %v, want execution.completed with the result", g.deliveries[2].body, err)
		}
		e := f.execution(b.ID)
		var log []string
		for _, a := range e.Webhook.Deliveries {
			log = append(log, a.Outcome)
		}
		if len(log) != 3 || log[0] != "retrying" || log[2] != "delivered" || e.Webhook.Deliveries[1].Status != 302 || !e.Webhook.Signed {
			f.Errorf("got the log %+v, want two retries and a delivery", e.Webhook)
		}
		if _, text := f.call("GET", "/api/executions/"+string(b.ID), ""); strings.Contains(text, "hush") {
			f.Errorf("got %s, want the secret kept", text)
		}
	})
}

func TestADeliveryFailsAfterFiveAttempts(t *testing.T) {
	g := &target{statuses: []int{503}}
	withControl(t, g.options(), func(f *fixture) {
		b := f.start(`{"capability":"shouting","input":"fail","webhook":{"url":"http://hooks.example","events":["execution.started","failed"]}}`)
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		e := f.execution(b.ID)
		if n := len(g.deliveries); n != 2*5 || len(e.Webhook.Deliveries) != n || e.Webhook.Deliveries[n-1].Outcome != "failed" {
			f.Errorf("got %d deliveries and the log %+v, want 5 of each event, then none", n, e.Webhook)
		}
		if !f.control.QueueIsEmpty() {
			f.Error("got more in the queue, want nothing")
		}
	})
}

func TestARetriedExecutionKeepsItsWebhook(t *testing.T) {
	g := &target{statuses: []int{200}}
	withControl(t, g.options(), func(f *fixture) {
		b := f.start(`{"capability":"shouting","input":"fail","webhook":{"url":"http://hooks.example"}}`)
		again := get[accepted](f, 202, "POST", "/api/executions/"+string(b.ID)+"/retry", "")
		time.Sleep(time.Second)
		synctest.Wait()
		if !again.WebhookConfigured || len(g.deliveries) != 2 || g.deliveries[1].header.Get("X-Parallax-Event") != "execution.failed" {
			f.Errorf("got %+v and %d deliveries, want one of each", again, len(g.deliveries))
		}
	})
}

func TestAWebhookIsOfWhoStartedTheExecutionAlone(t *testing.T) {
	g := &target{statuses: []int{200}}
	withControl(t, g.options(), func(f *fixture) {
		_, text := f.call("POST", "/api/executions", `{"capability":"shouting","input":"fail","webhook":{"url":"http://hooks.example/secret"}}`, "X-User", "ann")
		var b accepted
		if err := json.Unmarshal([]byte(text), &b); err != nil {
			f.Fatalf("got %s: %v", text, err)
		}
		if e := f.execution(b.ID); e.Webhook != nil { // an operator may read it
			f.Errorf("got %+v, want no webhook of somebody else", e.Webhook)
		}
		again := get[accepted](f, 202, "POST", "/api/executions/"+string(b.ID)+"/retry", "")
		time.Sleep(time.Second)
		synctest.Wait()
		if again.WebhookConfigured || len(g.deliveries) != 1 {
			f.Errorf("got %+v and %d deliveries, want that of the first execution alone", again, len(g.deliveries))
		}
	})
}

func TestFinishedWebhooksMakeRoomForOthers(t *testing.T) {
	const most = 1024
	for name, c := range map[string]struct {
		events string
		room   bool // before time passes
	}{
		"without a delivery":     {"cancelled", true},
		"with a failed delivery": {"completed", false},
	} {
		t.Run(name, func(t *testing.T) {
			refuse := roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("refused") })
			withControl(t, control.Options{Targets: webhook.TargetsAny, Transport: refuse}, func(f *fixture) {
				body := `{"capability":"shouting","input":"hello","webhook":{"url":"http://hooks.example","events":["` + c.events + `"]}}`
				var ids []core.TaskID
				for range most {
					ids = append(ids, f.start(body).ID)
				}
				if !c.room {
					if code, text := f.call("POST", "/api/executions", body); code != http.StatusServiceUnavailable {
						f.Errorf("one more: got %d %s, want 503", code, text)
					}
					time.Sleep(24 * time.Hour)
				}
				ids = append(ids, f.start(body).ID)
				for _, i := range []int{0, 1, most} {
					if has := f.execution(ids[i]).Webhook != nil; has != (i > 0) {
						f.Errorf("execution %d: got a webhook %t, want all but the first", i, has)
					}
				}
			})
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (t roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }
