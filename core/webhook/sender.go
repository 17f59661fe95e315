package webhook

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// delays has the time from each attempt to the next, the first from the event. It is that
// of the Parallax documentation.
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

// Attempt is one attempt to deliver. It has only the status of the response: the hub must not
// let clients read its body.
type Attempt struct {
	Number  int
	At      time.Time
	Took    time.Duration
	Outcome Outcome
	Status  int    // of the response, 0 without one
	Error   string // why there was none; "" else
	Next    time.Time
}

// Options configure a Sender.
type Options struct {
	// Targets restricts the targets; unset is TargetsPublic.
	Targets Targets
	// Transport makes the deliveries; nil is one that enforces Targets.
	Transport http.RoundTripper
}

// Sender makes deliveries. It is safe for concurrent use.
type Sender struct {
	opts    Options
	queue   queue
	ctx     context.Context //nolint:containedctx // deliveries end with the Sender
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// New returns a Sender. [Sender.Close] ends it.
func New(opts Options) *Sender {
	opts.Targets = cmp.Or(opts.Targets, TargetsPublic)
	if opts.Transport == nil {
		opts.Transport = opts.Targets.Transport()
	}
	s := &Sender{opts: opts, queue: newQueue()}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if opts.Targets == TargetsNone {
		return s
	}
	for range workers {
		s.running.Go(s.deliver)
	}
	return s
}

// Targets returns which targets are allowed.
func (s *Sender) Targets() Targets { return s.opts.Targets }

// Check returns the host of a URL, or the Fault for one that is not allowed: see
// [Targets.Check].
func (s *Sender) Check(address string, at Place) (host string, err error) {
	return s.opts.Targets.Check(address, at)
}

// Send queues a delivery. Without room in the queue it fails at once.
func (s *Sender) Send(d *Delivery) {
	d.due = time.Now()
	s.enqueue(d)
}

func (s *Sender) enqueue(d *Delivery) {
	number := d.attempts + 1
	if !s.queue.push(d) {
		d.Attempted(Attempt{Number: number, At: time.Now(), Outcome: Failed, Error: "the queue of deliveries is full"})
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

// IsIdle reports whether no delivery waits or is in flight.
func (s *Sender) IsIdle() bool {
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.byDue) == 0 && len(q.inFlight) == 0 && len(q.blocked) == 0 && q.bytes == 0
}

// deliver makes deliveries until the Sender ends, or the queue is finished and nothing is due.
func (s *Sender) deliver() {
	client := &http.Client{Transport: s.opts.Transport, Timeout: deliveryTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for {
		d := s.queue.next(s.ctx)
		if d == nil {
			return
		}
		began := time.Now()
		status, err := d.post(s.ctx, client)
		s.queue.done(d)
		if err != nil && s.ctx.Err() != nil {
			s.enqueue(d) // Close returns it as lost
			return
		}
		d.attempts++
		a := Attempt{Number: d.attempts, At: began, Outcome: Delivered, Status: status, Took: time.Since(began)}
		var forbidden *ForbiddenAddress
		switch {
		case err == nil && status/100 == 2:
		case d.attempts == len(delays), errors.As(err, &forbidden):
			a.Outcome = Failed
		default:
			a.Outcome = Retrying
			d.due = time.Now().Add(delays[d.attempts])
			a.Next = d.due
		}
		if err != nil {
			a.Error = errorText(err)
		}
		d.Attempted(a)
		if a.Outcome == Retrying {
			s.enqueue(d)
		}
	}
}

// errorText returns the error for a client, without addresses that it may not know.
func errorText(err error) string {
	var forbidden *ForbiddenAddress
	switch {
	case errors.As(err, &forbidden):
		return forbidden.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer within " + deliveryTimeout.String()
	}
	return "the target could not be reached"
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
