package control

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// hit is a delivery as its target sees it.
type hit struct {
	at     time.Time
	header http.Header
	body   []byte
}

// target is a real HTTP peer in memory, that answers with the statuses in turn.
type target struct {
	statuses []int

	mu   sync.Mutex
	hits []hit
}

// dial is the way to the target, whatever the address.
func (g *target) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		r, err := http.ReadRequest(bufio.NewReader(server))
		if err != nil {
			return
		}
		body, _ := io.ReadAll(r.Body) // a body that is cut off fails its signature
		g.mu.Lock()
		defer g.mu.Unlock()
		g.hits = append(g.hits, hit{time.Now(), r.Header, body})
		status := g.statuses[min(len(g.hits), len(g.statuses))-1]
		answer := http.Response{StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Close: true, Header: http.Header{"Location": {"http://127.0.0.1/"}}}
		_ = answer.Write(server) // the client may have gone
	}()
	return client, nil
}

func (g *target) options() Options {
	return Options{Targets: TargetsAny, Transport: &http.Transport{DialContext: g.dial, DisableKeepAlives: true}}
}

func TestAWebhookIsSignedAndToldAgainUntilItIsTaken(t *testing.T) {
	g := &target{statuses: []int{500, 302, 204}}
	onStage(t, g.options(), func(s *stage) {
		b := get[begun](s, 202, "POST", "/api/executions", `{"capability":"shouting","input":"hello","webhook":{"url":"http://hooks.example/x","secret":"hush"}}`)
		if !b.WebhookConfigured {
			s.Errorf("got %+v, want the webhook configured", b)
		}
		began := time.Now()
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(g.hits) != 3 {
			s.Fatalf("got %d deliveries, want 3: the third was taken", len(g.hits))
		}
		for i, want := range []time.Duration{0, time.Minute, 6 * time.Minute} {
			h := g.hits[i]
			if got := h.at.Sub(began); got != want {
				s.Errorf("delivery %d: got it after %s, want %s", i, got, want)
			}
			mac := hmac.New(sha256.New, []byte("hush"))
			mac.Write([]byte(h.header.Get("X-Parallax-Timestamp") + "." + string(h.body)))
			if got, want := h.header.Get("X-Parallax-Signature"), "sha256="+hex.EncodeToString(mac.Sum(nil)); got != want {
				s.Errorf("delivery %d: got the signature %s, want %s", i, got, want)
			}
			if got := h.header.Get("X-Parallax-Retry-Count"); got != []string{"", "1", "2"}[i] {
				s.Errorf("delivery %d: got retry %q", i, got)
			}
		}
		var told struct {
			ID, Type string
			Data     endedData
		}
		if err := json.Unmarshal(g.hits[2].body, &told); err != nil || told.Type != "execution.completed" || told.Data.ExecutionID != b.ID || string(told.Data.Result) != `"HELLO"` {
			s.Errorf("got %s and %v, want what was completed", g.hits[2].body, err)
		}
		e := get[execution](s, 200, "GET", "/api/executions/"+string(b.ID), "")
		var log []string
		for _, a := range e.Webhook.Deliveries {
			log = append(log, a.Outcome)
		}
		if len(log) != 3 || log[0] != outcomeRetrying || log[2] != outcomeDelivered || e.Webhook.Deliveries[1].Status != 302 || !e.Webhook.Signed {
			s.Errorf("got the log %+v, want two retries and a delivery", e.Webhook)
		}
		if _, text := s.call("GET", "/api/executions/"+string(b.ID), ""); strings.Contains(text, "hush") {
			s.Errorf("got %s, want the secret kept", text)
		}
	})
}

func TestAWebhookThatIsNeverTakenIsGivenUp(t *testing.T) {
	g := &target{statuses: []int{503}}
	onStage(t, g.options(), func(s *stage) {
		b := get[begun](s, 202, "POST", "/api/executions", `{"capability":"shouting","input":"fail","webhook":{"url":"http://hooks.example","events":["execution.started","failed"]}}`)
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		e := get[execution](s, 200, "GET", "/api/executions/"+string(b.ID), "")
		if n := len(g.hits); n != 2*len(backoff) || len(e.Webhook.Deliveries) != n || e.Webhook.Deliveries[n-1].Outcome != outcomeFailed {
			s.Errorf("got %d deliveries and the log %+v, want %d of each event, then none", n, e.Webhook, len(backoff))
		}
		if !s.control.hooks.known[b.ID].over() {
			s.Error("got more to come, want it over")
		}
	})
}

func TestWhatIsDueIsStillToldWhenTheHubStopsAndTheRestIsSaidToBeLost(t *testing.T) {
	g := &target{statuses: []int{500, 200}}
	var log strings.Builder
	opts := g.options()
	opts.Log = slog.New(slog.NewTextHandler(&log, nil))
	onStage(t, opts, func(s *stage) {
		const body = `{"capability":"shouting","input":"%s","webhook":{"url":"http://hooks.example"}}`
		retried := get[begun](s, 202, "POST", "/api/executions", fmt.Sprintf(body, "hello"))
		get[begun](s, 202, "POST", "/api/executions", fmt.Sprintf(body, "wait"))
		now, cut := context.WithCancel(s.Context())
		cut()
		if err := s.hub.Close(now, "shutdown"); err != nil {
			s.Error(err)
		}
		began := time.Now()
		within, cancel := context.WithTimeout(s.Context(), time.Minute)
		defer cancel()
		s.control.Close(within)
		if took := time.Since(began); took != 0 {
			s.Errorf("got it closed after %s, want it as soon as nothing was due", took)
		}
		if len(g.hits) != 2 || g.hits[1].header.Get("X-Parallax-Event") != "execution.failed" {
			s.Errorf("got %d deliveries, want how the other ended among them", len(g.hits))
		}
		if got := log.String(); !strings.Contains(got, "deliveries=1") || !strings.Contains(got, string(retried.ID)) {
			s.Errorf("got the log %q, want what is lost", got)
		}
		if got := s.hub.Counters()["parallax.webhook.lost"]; got != 1 {
			s.Errorf("got %d counted as lost, want 1", got)
		}
	})
}

func TestADeliveryThatIsCutOffWhenTheHubStopsIsSaidToBeLost(t *testing.T) {
	var log strings.Builder
	silent := &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, server) }() // until the client hangs up
		return client, nil
	}}
	onStage(t, Options{Targets: TargetsAny, Transport: silent, Log: slog.New(slog.NewTextHandler(&log, nil))}, func(s *stage) {
		get[begun](s, 202, "POST", "/api/executions", `{"capability":"shouting","input":"hello","webhook":{"url":"http://hooks.example"}}`)
		if err := s.hub.Close(s.Context(), "shutdown"); err != nil {
			s.Error(err)
		}
		began := time.Now()
		within, cancel := context.WithTimeout(s.Context(), 3*time.Second)
		defer cancel()
		s.control.Close(within)
		if took := time.Since(began); took != 3*time.Second || !strings.Contains(log.String(), "deliveries=1") {
			s.Errorf("got it closed after %s with the log %q, want the delivery lost after 3s", took, log.String())
		}
	})
}

func TestATargetThatNeverAnswersHoldsUpNoOther(t *testing.T) {
	g := &target{statuses: []int{200}}
	hanging := map[string]int{}
	var mu sync.Mutex
	mixed := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if !strings.HasPrefix(strings.ToLower(address), "silent") {
			return g.dial(ctx, network, address)
		}
		mu.Lock()
		hanging[strings.ToLower(address)]++
		mu.Unlock()
		client, server := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, server) }() // until the client hangs up
		return client, nil
	}}
	onStage(t, Options{Targets: TargetsAny, Transport: mixed}, func(s *stage) {
		start := func(host string) core.TaskID {
			return get[begun](s, 202, "POST", "/api/executions", `{"capability":"shouting","input":"hello","webhook":{"url":"http://`+host+`"}}`).ID
		}
		for i := range 3 * deliverers {
			start([]string{"silent.example", "Silent.example:81", "silent2.example"}[i%3])
		}
		synctest.Wait()
		mu.Lock()
		if first, second := hanging["silent.example:80"]+hanging["silent.example:81"], hanging["silent2.example:80"]; first != mostAtOnce || second != mostAtOnce {
			s.Errorf("got %v under way, want %d to each host", hanging, mostAtOnce)
		}
		mu.Unlock()
		answers := start("hooks.example")
		synctest.Wait()
		if len(g.hits) != 1 {
			s.Errorf("got %d deliveries to who answers, want one at once", len(g.hits))
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		hooks := s.control.hooks
		if got := s.hub.Counters()["parallax.webhook.failed"]; got != 3*deliverers {
			s.Errorf("got %d given up, want each of the others", got)
		}
		if q := &hooks.queue; !hooks.known[answers].over() || len(q.rest()) != 0 || len(q.under) != 0 || len(q.held) != 0 || q.bytes != 0 {
			s.Errorf("got %d that wait, %v under way and %d bytes, want none", len(q.rest()), q.under, q.bytes)
		}
	})
}

func TestAnExecutionThatIsRetriedKeepsItsWebhook(t *testing.T) {
	g := &target{statuses: []int{200}}
	onStage(t, g.options(), func(s *stage) {
		b := get[begun](s, 202, "POST", "/api/executions", `{"capability":"shouting","input":"fail","webhook":{"url":"http://hooks.example"}}`)
		again := get[begun](s, 202, "POST", "/api/executions/"+string(b.ID)+"/retry", "")
		time.Sleep(time.Second)
		synctest.Wait()
		if !again.WebhookConfigured || len(g.hits) != 2 || g.hits[1].header.Get("X-Parallax-Event") != "execution.failed" {
			s.Errorf("got %+v and %d deliveries, want one of each", again, len(g.hits))
		}
	})
}

func TestOfManyWebhooksThoseThatAreOverMakeRoom(t *testing.T) {
	g := &target{statuses: []int{200}}
	onStage(t, g.options(), func(s *stage) {
		body := `{"capability":"shouting","input":"hello","webhook":{"url":"http://hooks.example","events":["cancelled"]}}`
		for range mostHooks {
			get[begun](s, 202, "POST", "/api/executions", body)
		}
		first := s.control.hooks.order[0]
		get[begun](s, 202, "POST", "/api/executions", body)
		if n := len(s.control.hooks.known); n != mostHooks || s.control.hooks.known[first] != nil {
			s.Errorf("got %d known, the first among them: %t; want %d without it", n, s.control.hooks.known[first] != nil, mostHooks)
		}
	})
}

func TestOnlyAddressesOfThePublicInternetAreTargets(t *testing.T) {
	for address, want := range map[string]bool{
		"93.184.216.34": true, "2606:2800:220:1::1": true,
		"127.0.0.1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.0.1": false, "169.254.169.254": false, "100.64.0.1": false, "0.0.0.0": false,
		"224.0.0.1": false, "255.255.255.255": false, "198.18.0.1": false, "240.0.0.1": false, "192.0.2.1": false,
		"::1": false, "::": false, "fe80::1": false, "fd00::1": false, "::ffff:127.0.0.1": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false, "::7f00:1": false, "ff02::1": false,
	} {
		if got := public(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: got public %t, want %t", address, got, want)
		}
	}
}

func TestTheConnectionItselfIsRefusedWhateverItsNameSaid(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	try := func(targets Targets) error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := targets.transport().RoundTrip(r)
		if err == nil {
			answer.Body.Close()
		}
		return err
	}
	var forbidden *errTarget
	if err := try(TargetsPublic); !errors.As(err, &forbidden) {
		t.Errorf("loopback: got %v, want it refused", err)
	}
	if err := try(TargetsAny); err != nil {
		t.Errorf("loopback where any target is allowed: got %v, want an answer", err)
	}
}
