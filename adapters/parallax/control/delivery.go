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

// delays has the time from each attempt to the next, the first from the event. It is that
// of the Parallax documentation.
var delays = []time.Duration{0, time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour}

const (
	workers         = 4 * maxPerTarget // deliveries in flight
	deliveryTimeout = 30 * time.Second
	maxAttempts     = 20 // in the log of an execution: more than two events can have
)

// delivery is an event on its way to a webhook.
type delivery struct {
	hook       *hook
	id, event  string
	body       []byte
	due, first time.Time
	attempts   int // so far
}

// The outcomes of an attempt.
const (
	outcomeDelivered = "delivered"
	outcomeRetrying  = "retrying"
	outcomeFailed    = "failed"
)

// attempt is an entry in the log of deliveries. It has only the status of the response:
// the hub must not let clients read its body.
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

// webhookView is the webhook of an execution, without its secret.
type webhookView struct {
	URL        string    `json:"url"`
	Signed     bool      `json:"signed"`
	Events     []string  `json:"events"`
	Deliveries []attempt `json:"deliveries"`
}

func (w *webhooks) view(id core.TaskID) *webhookView {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.hooks[id]
	if k == nil {
		return nil
	}
	v := &webhookView{URL: k.url, Signed: len(k.secret) > 0, Deliveries: append([]attempt{}, k.attempts...)}
	for _, e := range k.events {
		v.Events = append(v.Events, eventPrefix+e)
	}
	return v
}

// deliver makes deliveries until ctx ends, or the queue is finished and nothing is due.
func (w *webhooks) deliver(ctx context.Context) {
	client := &http.Client{Transport: w.opts.Transport, Timeout: deliveryTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for {
		d := w.queue.next(ctx)
		if d == nil {
			return
		}
		began := time.Now()
		status, err := d.post(ctx, client)
		w.queue.done(d)
		if err != nil && ctx.Err() != nil {
			w.enqueue(d) // close counts it as lost
			return
		}
		d.attempts++
		a := attempt{Number: d.attempts, At: began, Outcome: outcomeDelivered, Status: status, Took: time.Since(began).Milliseconds()}
		var forbidden *forbiddenAddress
		switch {
		case err == nil && status/100 == 2:
		case d.attempts == len(delays), errors.As(err, &forbidden):
			a.Outcome = outcomeFailed
		default:
			a.Outcome = outcomeRetrying
			d.due = time.Now().Add(delays[d.attempts])
			due := d.due
			a.Next = &due
		}
		if err != nil {
			a.Error = errorText(err)
		}
		w.record(d, a)
		if a.Outcome == outcomeRetrying {
			w.enqueue(d)
		}
	}
}

// enqueue queues a delivery. It fails if there is no room.
func (w *webhooks) enqueue(d *delivery) {
	number := d.attempts + 1
	if !w.queue.push(d) {
		w.record(d, attempt{Number: number, At: time.Now(), Outcome: outcomeFailed, Error: "the queue of deliveries is full"})
	}
}

// errorText returns the error for the log, without addresses that its reader may not know.
func errorText(err error) string {
	var forbidden *forbiddenAddress
	switch {
	case errors.As(err, &forbidden):
		return forbidden.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer within " + deliveryTimeout.String()
	}
	return "the target could not be reached"
}

// record adds an attempt to the log of its execution.
func (w *webhooks) record(d *delivery, a attempt) {
	a.Delivery, a.Event = d.id, d.event
	w.hub.Count("parallax.webhook." + a.Outcome)
	w.mu.Lock()
	defer w.mu.Unlock()
	k := d.hook
	if a.Outcome != outcomeRetrying {
		k.waiting--
	}
	if len(k.attempts) < maxAttempts {
		k.attempts = append(k.attempts, a)
	}
}

// post makes one attempt, and returns the status of the response.
func (d *delivery) post(ctx context.Context, client *http.Client) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.hook.url, bytes.NewReader(d.body))
	if err != nil {
		return 0, err
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	for name, value := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "Dragoman-Webhook/1.0", "X-Parallax-Event": d.event, "X-Parallax-Delivery": d.id, "X-Parallax-Timestamp": at,
	} {
		r.Header.Set(name, value)
	}
	if len(d.hook.secret) > 0 {
		r.Header.Set("X-Parallax-Signature", sign(d.hook.secret, at, d.body))
	}
	if d.attempts > 0 {
		r.Header.Set("X-Parallax-Retry-Count", strconv.Itoa(d.attempts))
		r.Header.Set("X-Parallax-Original-Timestamp", strconv.FormatInt(d.first.Unix(), 10))
	}
	response, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, 64<<10) // so that the target can finish its response
	return response.StatusCode, nil
}

// sign returns the signature of a delivery over its time and body.
func sign(secret []byte, at string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(at + "."))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}
