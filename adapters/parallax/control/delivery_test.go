package control_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/control"
	"github.com/dragoman-hub/dragoman/core/webhook"
)

func TestCloseMakesTheDueDeliveriesAndLogsTheOthersAsLost(t *testing.T) {
	g := &target{statuses: []int{500, 200}}
	var log strings.Builder
	opts := g.options()
	opts.Log = slog.New(slog.NewTextHandler(&log, nil))
	withControl(t, opts, func(f *fixture) {
		const body = `{"capability":"shouting","input":"%s","webhook":{"url":"http://hooks.example"}}`
		retried := f.start(fmt.Sprintf(body, "hello"))
		f.start(fmt.Sprintf(body, "wait"))
		now, cut := context.WithCancel(f.Context())
		cut()
		if err := f.hub.Close(now, "shutdown"); err != nil {
			f.Error(err)
		}
		began := time.Now()
		within, cancel := context.WithTimeout(f.Context(), time.Minute)
		defer cancel()
		f.control.Close(within)
		if took := time.Since(began); took != 0 {
			f.Errorf("got it closed after %s, want it at once, with nothing due", took)
		}
		if len(g.deliveries) != 2 || g.deliveries[1].header.Get("X-Parallax-Event") != "execution.failed" {
			f.Errorf("got %d deliveries, want 2, the last for the failure of the other execution", len(g.deliveries))
		}
		if got := log.String(); !strings.Contains(got, "deliveries=1") || !strings.Contains(got, string(retried.ID)) {
			f.Errorf("got the log %q, want the lost delivery", got)
		}
		if got := f.hub.Counters()["parallax.webhook.lost"]; got != 1 {
			f.Errorf("got %d counted as lost, want 1", got)
		}
	})
}

func TestADeliveryInterruptedByCloseIsLoggedAsLost(t *testing.T) {
	var log strings.Builder
	silent := &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, server) }() // until the client hangs up
		return client, nil
	}}
	withControl(t, control.Options{Targets: webhook.TargetsAny, Transport: silent, Log: slog.New(slog.NewTextHandler(&log, nil))}, func(f *fixture) {
		f.start(`{"capability":"shouting","input":"hello","webhook":{"url":"http://hooks.example"}}`)
		if err := f.hub.Close(f.Context(), "shutdown"); err != nil {
			f.Error(err)
		}
		began := time.Now()
		within, cancel := context.WithTimeout(f.Context(), 3*time.Second)
		defer cancel()
		f.control.Close(within)
		if took := time.Since(began); took != 3*time.Second || !strings.Contains(log.String(), "deliveries=1") {
			f.Errorf("got it closed after %s with the log %q, want the delivery lost after 3s", took, log.String())
		}
	})
}

func TestASilentTargetDoesNotDelayOthers(t *testing.T) {
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
	withControl(t, control.Options{Targets: webhook.TargetsAny, Transport: mixed}, func(f *fixture) {
		const workers, perTarget = 32, 8
		start := func(host string) {
			f.start(`{"capability":"shouting","input":"hello","webhook":{"url":"http://` + host + `"}}`)
		}
		for i := range 3 * workers {
			start([]string{"silent.example", "Silent.example:81", "silent2.example"}[i%3])
		}
		synctest.Wait()
		mu.Lock()
		if first, second := hanging["silent.example:80"]+hanging["silent.example:81"], hanging["silent2.example:80"]; first != perTarget || second != perTarget {
			f.Errorf("got %v in flight, want %d to each host", hanging, perTarget)
		}
		mu.Unlock()
		start("hooks.example")
		synctest.Wait()
		if len(g.deliveries) != 1 {
			f.Errorf("got %d deliveries to the target that answers, want one at once", len(g.deliveries))
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if got := f.hub.Counters()["parallax.webhook.failed"]; got != 3*workers {
			f.Errorf("got %d failed deliveries, want all of the others", got)
		}
		if !f.control.QueueIsEmpty() {
			f.Error("got more in the queue, want nothing")
		}
	})
}
