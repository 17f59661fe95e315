package webhook_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core/webhook"
)

// serve starts a target, outside of any bubble: a listening socket would hold up the time there.
func serve(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) string {
	srv := httptest.NewServer(http.HandlerFunc(answer))
	t.Cleanup(srv.Close)
	return srv.URL
}

// delivery returns a delivery whose attempts go to a channel with room for all of them.
func delivery(url, target string) (*webhook.Delivery, chan webhook.Outcome) {
	attempts := make(chan webhook.Outcome, 10)
	return &webhook.Delivery{
		URL: url, Target: target, Of: target, Body: []byte("{}"),
		Header: func(int) http.Header { return http.Header{} }, Attempted: func(a webhook.Outcome) { attempts <- a },
	}, attempts
}

func TestADeliveryIsRepeatedUntilItIsAcceptedAndFiveTimesAtMost(t *testing.T) {
	var asked atomic.Int32
	accepts := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader([]int{http.StatusInternalServerError, http.StatusFound, http.StatusNoContent}[asked.Add(1)-1])
	})
	refuses := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	synctest.Test(t, func(t *testing.T) {
		s := webhook.New(webhook.TargetsAny)
		for url, want := range map[string]struct {
			outcome webhook.Outcome
			after   []time.Duration
		}{
			accepts: {webhook.Delivered, []time.Duration{0, time.Minute, 6 * time.Minute}},
			refuses: {webhook.Failed, []time.Duration{0, time.Minute, 6 * time.Minute, 36 * time.Minute, 156 * time.Minute}},
		} {
			d, attempts := delivery(url, "target")
			began := time.Now()
			s.Send(d)
			for i, after := range want.after {
				outcome := webhook.Retrying
				if i == len(want.after)-1 {
					outcome = want.outcome
				}
				if a := <-attempts; a != outcome || time.Since(began) != after {
					t.Errorf("attempt %d: got %s after %s, want %s after %s", i+1, a, time.Since(began), outcome, after)
				}
			}
		}
		if lost := s.Close(t.Context()); len(lost) > 0 {
			t.Errorf("got %d lost, want nothing left", len(lost))
		}
	})
}

// Who names many targets that do not answer makes the hub keep a delivery for each, and nothing that runs.
func TestManySilentTargetsCostNoGoroutineEach(t *testing.T) {
	const targets, inFlight = 2000, 32
	hanging := make(chan struct{}, targets)
	silent := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		hanging <- struct{}{}
		<-r.Context().Done()
	})
	s := webhook.New(webhook.TargetsAny)
	before := runtime.NumGoroutine()
	for i := range targets {
		d, _ := delivery(silent, strconv.Itoa(i))
		s.Send(d)
	}
	for range inFlight {
		<-hanging
	}
	if n := runtime.NumGoroutine() - before; n > targets/2 {
		t.Errorf("got %d goroutines for %d targets, want some for each of the %d deliveries in flight", n, targets, inFlight)
	}
	now, cancel := context.WithCancel(t.Context())
	cancel()
	if lost := s.Close(now); len(lost) != targets {
		t.Errorf("got %d lost, want all %d", len(lost), targets)
	}
}

func TestASilentTargetDoesNotDelayOthers(t *testing.T) {
	const perTarget, each = 8, 32
	hanging := make(chan string, 10*each)
	silent := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // until then the server does not see that the client has gone
		hanging <- r.URL.Path
		<-r.Context().Done()
	})
	answers := serve(t, func(http.ResponseWriter, *http.Request) {})
	s := webhook.New(webhook.TargetsAny)
	for range each {
		for _, target := range []string{"one", "two"} {
			d, _ := delivery(silent+"/"+target, target)
			s.Send(d)
		}
	}
	inFlight := map[string]int{}
	for range 2 * perTarget {
		inFlight[<-hanging]++
	}
	if inFlight["/one"] != perTarget || inFlight["/two"] != perTarget {
		t.Errorf("got %v in flight, want %d to each target", inFlight, perTarget)
	}
	d, attempts := delivery(answers, "three")
	s.Send(d)
	if a := <-attempts; a != webhook.Delivered {
		t.Errorf("got %+v, want it delivered while the others hang", a)
	}
	now, cut := context.WithCancel(t.Context())
	cut()
	if lost := s.Close(now); len(lost) != 2*each {
		t.Errorf("got %d lost at the end, want all %d that had no answer", len(lost), 2*each)
	}
}

func TestCloseMakesWhatIsDueAndReturnsTheOthersAsLost(t *testing.T) {
	refuses := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	answers := serve(t, func(http.ResponseWriter, *http.Request) {})
	s := webhook.New(webhook.TargetsAny)
	retried, tried := delivery(refuses, "refuses")
	s.Send(retried)
	<-tried
	due, made := delivery(answers, "answers")
	s.Send(due)
	if lost := s.Close(t.Context()); len(lost) != 1 || lost[0].Of != "refuses" {
		t.Errorf("got %v lost, want the one that waits for its next attempt", lost)
	}
	if a := <-made; a != webhook.Delivered {
		t.Errorf("got %+v, want it made before the end", a)
	}
}
