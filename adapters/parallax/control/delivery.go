package control

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/webhook"
)

const maxAttempts = 20 // in the log of an execution: more than two events can have

// delivery is an event on its way to a webhook.
type delivery struct {
	hook      *hook
	id, event string
	body      []byte
	first     time.Time
}

// attempt is an entry in the log of deliveries.
type attempt struct {
	Delivery string          `json:"id"`
	Event    string          `json:"event"`
	Number   int             `json:"attempt"`
	At       time.Time       `json:"at"`
	Outcome  webhook.Outcome `json:"outcome"`
	Status   int             `json:"responseStatus,omitempty"`
	Error    string          `json:"error,omitempty"`
	Took     int64           `json:"duration"` // in milliseconds
	Next     *time.Time      `json:"nextAttempt,omitempty"`
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

// send queues a delivery.
func (w *webhooks) send(d *delivery) {
	w.sender.Send(&webhook.Delivery{
		URL: d.hook.url, Target: d.hook.target, Body: d.body, Header: d.header, Of: d.hook.task,
		Attempted: func(a webhook.Attempt) { w.record(d, a) },
	})
}

// record adds an attempt to the log of its execution.
func (w *webhooks) record(d *delivery, a webhook.Attempt) {
	entry := attempt{Delivery: d.id, Event: d.event, Number: a.Number, At: a.At, Outcome: a.Outcome, Status: a.Status, Error: a.Error, Took: a.Took.Milliseconds()}
	if !a.Next.IsZero() {
		entry.Next = &a.Next
	}
	w.hub.Count("parallax.webhook." + string(a.Outcome))
	w.mu.Lock()
	defer w.mu.Unlock()
	k := d.hook
	if a.Outcome != webhook.Retrying {
		k.waiting--
	}
	if len(k.attempts) < maxAttempts {
		k.attempts = append(k.attempts, entry)
	}
}

// header returns the headers of an attempt.
func (d *delivery) header(number int) http.Header {
	at := strconv.FormatInt(time.Now().Unix(), 10)
	h := http.Header{}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "X-Parallax-Event": d.event, "X-Parallax-Delivery": d.id, "X-Parallax-Timestamp": at,
	} {
		h.Set(name, value)
	}
	if len(d.hook.secret) > 0 {
		h.Set("X-Parallax-Signature", sign(d.hook.secret, at, d.body))
	}
	if number > 1 {
		h.Set("X-Parallax-Retry-Count", strconv.Itoa(number-1))
		h.Set("X-Parallax-Original-Timestamp", strconv.FormatInt(d.first.Unix(), 10))
	}
	return h
}

// sign returns the signature of a delivery over its time and body.
func sign(secret []byte, at string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(at + "."))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}
