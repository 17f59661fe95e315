package webhook

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// delays has the time from each attempt to the next, the first from the event.
var delays = []time.Duration{0, time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour}

const (
	workers         = 4 * maxPerTarget // deliveries in flight
	deliveryTimeout = 30 * time.Second
)

// Delivery is a message on its way to a target.
type Delivery struct {
	// URL is where it is posted, and Target its host, as [Targets.Check] returned it.
	URL, Target string
	Body        []byte
	// Header returns the headers of an attempt, counted from 1.
	Header func(attempt int) http.Header
	// Attempted is called after each attempt. It may send other deliveries.
	Attempted func(Attempt)
	// Of is what the sender of a lost delivery recognises it by.
	Of any

	due      time.Time
	attempts int // so far
}

// Outcome is what became of an attempt.
type Outcome string

// The outcomes. No attempt follows but one that is retried.
const (
	Delivered Outcome = "delivered"
	Retrying  Outcome = "retrying"
	Failed    Outcome = "failed"
)

// Attempt is one attempt to deliver. It has nothing of the response, which the hub must not let
// clients read.
type Attempt struct{ Outcome Outcome }

// Options configure a Sender.
type Options struct {
	// Targets restricts the targets.
	Targets Targets
}

// Sender makes deliveries. It is safe for concurrent use.
type Sender struct {
	targets Targets
	queue   queue
	ctx     context.Context //nolint:containedctx // deliveries end with the Sender
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// New returns a Sender. [Sender.Close] ends it.
func New(opts Options) *Sender {
	s := &Sender{targets: opts.Targets, queue: newQueue()}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	client := &http.Client{Transport: opts.Targets.Transport(), Timeout: deliveryTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for range workers {
		s.running.Go(func() { s.deliver(client) })
	}
	return s
}

// Check returns the host of a URL, or the Fault for one that is not allowed: see
// [Targets.Check].
func (s *Sender) Check(address string, at Place) (host string, err error) {
	return s.targets.Check(address, at)
}

// Send queues a delivery. Without room in the queue it fails at once.
func (s *Sender) Send(d *Delivery) {
	d.due = time.Now()
	s.enqueue(d)
}

func (s *Sender) enqueue(d *Delivery) {
	if !s.queue.push(d) {
		d.Attempted(Attempt{Failed})
	}
}

// Close makes the deliveries that are due until ctx ends, and returns those that are lost:
// the queue is in memory.
func (s *Sender) Close(ctx context.Context) (lost []*Delivery) {
	stop := context.AfterFunc(ctx, s.cancel)
	defer stop()
	s.queue.finish()
	s.running.Wait()
	s.cancel()
	return s.queue.waiting()
}

// deliver makes deliveries until the Sender ends, or the queue is finished and nothing is due.
func (s *Sender) deliver(client *http.Client) {
	for {
		d := s.queue.next(s.ctx)
		if d == nil {
			return
		}
		status, err := d.post(s.ctx, client)
		s.queue.done(d)
		if err != nil && s.ctx.Err() != nil {
			s.enqueue(d) // Close returns it as lost
			return
		}
		d.attempts++
		outcome := d.outcome(status, err)
		d.Attempted(Attempt{outcome})
		if outcome == Retrying {
			d.due = time.Now().Add(delays[d.attempts])
			s.enqueue(d)
		}
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
