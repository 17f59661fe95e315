package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core/fifo"
)

// delays has the time from each attempt to the next, the first from the event.
var delays = []time.Duration{0, time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour}

// The bounds of a Sender. Of the deliveries in flight at most maxPerTarget are to one target, so that a target
// that never answers leaves some for the others.
const (
	maxInFlight     = 4 * maxPerTarget
	maxPerTarget    = 8
	maxQueueBytes   = 64 << 20
	deliveryTimeout = 30 * time.Second
)

// Delivery is a message on its way to a target.
type Delivery struct {
	// URL is where it is posted, and Target its host, as [Targets.Check] returned it.
	URL, Target string
	Body        []byte
	// Header returns the headers of an attempt, counted from 1.
	Header func(attempt int) http.Header
	// Attempted is called after each attempt. It may send other deliveries. It learns nothing of the response, which
	// the hub must not let clients read.
	Attempted func(Outcome)
	// Of is what the sender of a lost delivery recognises it by.
	Of any

	attempts int         // so far
	why      string      // the last one did not succeed
	retry    *time.Timer // to the next; nil while it is due
}

// Attempt returns how many attempts there were, and why the last one did not succeed: the status or the error, without
// the URL. It is for Attempted, and for who has named the target alone: it tells what the hub reaches.
func (d *Delivery) Attempt() (n int, why string) { return d.attempts, d.why }

// Outcome is what became of an attempt.
type Outcome string

// The outcomes. No attempt follows but one that is retried.
const (
	Delivered Outcome = "delivered"
	Retrying  Outcome = "retrying"
	Failed    Outcome = "failed"
)

// Sender makes deliveries. It is safe for concurrent use.
type Sender struct {
	targets Targets
	client  *http.Client
	ctx     context.Context //nolint:containedctx // deliveries end with the Sender
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	all     map[*Delivery]struct{} // that have neither succeeded nor failed
	bytes   int                    // of them
	due     fifo.Queue[*Delivery]  // with a place at their target
	to      map[string]*target     // those with deliveries that are due
	workers int
	closed  bool
}

// target is one of the targets of a Sender.
type target struct {
	places  int                   // of maxPerTarget that are taken
	waiting fifo.Queue[*Delivery] // for one
}

// New returns a Sender to some targets. [Sender.Close] ends it.
func New(targets Targets) *Sender {
	s := &Sender{targets: targets, all: map[*Delivery]struct{}{}, to: map[string]*target{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.client = &http.Client{Transport: targets.Transport(), Timeout: deliveryTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return s
}

// Check returns the host of a URL, or the Fault for one that is not allowed: see
// [Targets.Check].
func (s *Sender) Check(address string, at Place) (host string, err error) {
	return s.targets.Check(address, at)
}

// Send queues a delivery. Without room in the queue it fails at once.
func (s *Sender) Send(d *Delivery) {
	s.mu.Lock()
	room := s.bytes+len(d.Body) <= maxQueueBytes
	if room {
		s.bytes += len(d.Body)
		s.all[d] = struct{}{}
		s.push(d)
	}
	s.mu.Unlock()
	if !room {
		d.why = "the queue is full"
		d.Attempted(Failed)
	}
}

// push queues a delivery that is due. Callers hold mu.
func (s *Sender) push(d *Delivery) {
	d.retry = nil
	if s.closed && s.workers == 0 {
		return // it is lost
	}
	t := s.to[d.Target]
	if t == nil {
		t = &target{}
		s.to[d.Target] = t
	}
	if t.places == maxPerTarget {
		t.waiting.Push(d)
		return
	}
	t.places++
	s.due.Push(d)
	if s.workers < maxInFlight {
		s.workers++
		s.running.Go(s.work)
	}
}

// Close makes the deliveries that are due until ctx ends, and returns those that are lost:
// the queue is in memory.
func (s *Sender) Close(ctx context.Context) (lost []*Delivery) {
	stop := context.AfterFunc(ctx, s.cancel)
	defer stop()
	s.mu.Lock()
	s.closed = true
	for d := range s.all {
		if d.retry != nil {
			d.retry.Stop()
		}
	}
	s.mu.Unlock()
	s.running.Wait()
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.all))
}

// work makes the deliveries that are due, until the Sender ends or none is left.
func (s *Sender) work() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		d, ok := s.due.Pop()
		if !ok || s.ctx.Err() != nil {
			s.workers--
			return
		}
		s.mu.Unlock()
		s.attempt(d)
		s.mu.Lock()
		s.leave(d.Target)
	}
}

// leave gives a place at a target to the delivery that waits for it. Callers hold mu.
func (s *Sender) leave(to string) {
	t := s.to[to]
	if next, ok := t.waiting.Pop(); ok {
		s.due.Push(next)
		return
	}
	if t.places--; t.places == 0 {
		delete(s.to, to)
	}
}

// attempt makes one attempt, and has another follow where that may help.
func (s *Sender) attempt(d *Delivery) {
	status, err := d.post(s.ctx, s.client)
	if err != nil && s.ctx.Err() != nil {
		return // Close returns it as lost
	}
	d.attempts++
	d.why = reasonOf(status, err)
	outcome := d.outcome(status, err)
	d.Attempted(outcome)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case outcome != Retrying:
		delete(s.all, d)
		s.bytes -= len(d.Body)
	case !s.closed:
		d.retry = time.AfterFunc(delays[d.attempts], func() { s.again(d) })
	}
}

// again makes a delivery due.
func (s *Sender) again(d *Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.push(d)
	}
}

// outcome returns what became of the latest attempt.
func (d *Delivery) outcome(status int, err error) Outcome {
	var forbidden *ForbiddenAddress
	switch {
	case err == nil && status/100 == 2:
		return Delivered
	case d.attempts == len(delays), errors.As(err, &forbidden):
		return Failed
	}
	return Retrying
}

// reasonOf returns why an attempt did not succeed; "" if it did.
func reasonOf(status int, err error) string {
	var of *url.Error
	switch {
	case errors.As(err, &of): // it has the URL
		return of.Err.Error()
	case err != nil:
		return err.Error()
	case status/100 != 2:
		return fmt.Sprintf("the target answered %d %s", status, http.StatusText(status))
	}
	return ""
}

// post makes one attempt, and returns the status of the response.
func (d *Delivery) post(ctx context.Context, client *http.Client) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL, bytes.NewReader(d.Body))
	if err != nil {
		return 0, err
	}
	r.Header = d.Header(d.attempts + 1)
	r.Header.Set("User-Agent", "Dragoman-Webhook/1.0")
	response, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, 64<<10) // so that the target can finish its response
	return response.StatusCode, nil
}
