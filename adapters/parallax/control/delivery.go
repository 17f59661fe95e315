package control

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// backoff is how long after the one before each attempt comes, as the documentation of
// Parallax has it.
var backoff = []time.Duration{0, time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour}

const (
	// deliverers is how many deliveries are under way at once.
	deliverers = 4 * mostAtOnce
	// deliveryTime is how long one may take.
	deliveryTime = 30 * time.Second
	// mostAttempts is how many attempts of an execution the log keeps: more than there
	// are for the two events that it can have.
	mostAttempts = 20
)

// delivery is an event on its way.
type delivery struct {
	hook       *hook
	id, kind   string
	body       []byte
	due, first time.Time
	made       int // attempts so far
}

// The outcomes of an attempt.
const (
	outcomeDelivered = "delivered"
	outcomeRetrying  = "retrying"
	outcomeFailed    = "failed"
)

// attempt is an entry in the log of deliveries. Of an answer it has the status alone:
// what stands in it is nothing to read through the hub.
type attempt struct {
	Delivery string     `json:"id"`
	Event    string     `json:"event"`
	Number   int        `json:"attempt"`
	At       time.Time  `json:"at"`
	Outcome  string     `json:"outcome"`
	Status   int        `json:"responseStatus,omitempty"`
	Error    string     `json:"error,omitempty"`
	Took     int64      `json:"duration"` // in milliseconds
	Next     *time.Time `json:"nextAttempt,omitempty"`
}

// hookView is a webhook as an execution shows it, without its secret.
type hookView struct {
	URL        string    `json:"url"`
	Signed     bool      `json:"signed"`
	Events     []string  `json:"events"`
	Deliveries []attempt `json:"deliveries"`
}

func (q *hooks) view(id core.TaskID) *hookView {
	q.mu.Lock()
	defer q.mu.Unlock()
	k := q.known[id]
	if k == nil {
		return nil
	}
	v := &hookView{URL: k.url, Signed: len(k.secret) > 0, Deliveries: append([]attempt{}, k.attempts...)}
	for _, e := range k.events {
		v.Events = append(v.Events, hookPrefix+e)
	}
	return v
}

// deliverAll delivers what is due until ctx ends, or until nothing is and the queue is
// finished.
func (q *hooks) deliverAll(ctx context.Context) {
	client := &http.Client{Transport: q.opts.Transport, Timeout: deliveryTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for {
		d := q.queue.next(ctx)
		if d == nil {
			return
		}
		began := time.Now()
		status, err := d.post(ctx, client)
		q.queue.done(d)
		if err != nil && ctx.Err() != nil {
			q.enqueue(d) // it was cut off
			return
		}
		d.made++
		a := attempt{Number: d.made, At: began, Outcome: outcomeDelivered, Status: status, Took: time.Since(began).Milliseconds()}
		var forbidden *errTarget
		switch {
		case err == nil && status/100 == 2:
		case d.made == len(backoff), errors.As(err, &forbidden):
			a.Outcome = outcomeFailed
		default:
			a.Outcome = outcomeRetrying
			d.due = time.Now().Add(backoff[d.made])
			due := d.due
			a.Next = &due
		}
		if err != nil {
			a.Error = wording(err)
		}
		q.settle(d, a)
		if a.Outcome == outcomeRetrying {
			q.enqueue(d)
		}
	}
}

// enqueue puts a delivery in the queue; one that finds no room has failed.
func (q *hooks) enqueue(d *delivery) {
	number := d.made + 1
	if !q.queue.push(d) {
		q.settle(d, attempt{Number: number, At: time.Now(), Outcome: outcomeFailed, Error: "too much waits for its delivery"})
	}
}

// wording is what the log says of an error: its cause, without the address that the
// reader of the log knows.
func wording(err error) string {
	var forbidden *errTarget
	switch {
	case errors.As(err, &forbidden):
		return forbidden.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer within " + deliveryTime.String()
	}
	return "the target could not be reached"
}

// settle logs an attempt.
func (q *hooks) settle(d *delivery, a attempt) {
	a.Delivery, a.Event = d.id, d.kind
	q.hub.Count("parallax.webhook." + a.Outcome)
	q.mu.Lock()
	defer q.mu.Unlock()
	k := d.hook
	if a.Outcome != outcomeRetrying {
		k.waiting--
	}
	if len(k.attempts) < mostAttempts {
		k.attempts = append(k.attempts, a)
	}
}

// post makes one attempt. It returns the status of the answer.
func (d *delivery) post(ctx context.Context, client *http.Client) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.hook.url, bytes.NewReader(d.body))
	if err != nil {
		return 0, err
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	for name, value := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "Dragoman-Webhook/1.0", "X-Parallax-Event": d.kind, "X-Parallax-Delivery": d.id, "X-Parallax-Timestamp": at,
	} {
		r.Header.Set(name, value)
	}
	if len(d.hook.secret) > 0 {
		r.Header.Set("X-Parallax-Signature", sign(d.hook.secret, at, d.body))
	}
	if d.made > 0 {
		r.Header.Set("X-Parallax-Retry-Count", strconv.Itoa(d.made))
		r.Header.Set("X-Parallax-Original-Timestamp", strconv.FormatInt(d.first.Unix(), 10))
	}
	answer, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, 64<<10) // only so that the peer is not cut off in the middle
	return answer.StatusCode, nil
}

// sign is the signature of a delivery: over its time and its body.
func sign(secret []byte, at string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(at + "."))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}
