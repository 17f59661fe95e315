package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// reply is the answer to a request on its way from the SDK to the client. A stream is passed
// on at once; any other answer is held until it is complete. The SDK knows the request by a
// mark instead of its id, which reply replaces by the id that the client sent. A client that
// accepts a stream gets one if it has to wait, so that it and proxies see that the
// connection is alive. One that sent a progress token gets the stream with progress
// notifications as soon as its tool runs; official clients wait longer for those.
type reply struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	head http.Header
	mark []byte // as JSON
	id   json.RawMessage

	mu        sync.Mutex
	status    int
	held      []byte
	streaming bool // the head of a stream was sent
	passing   bool // the SDK writes the stream itself
	over      bool
	alive     *time.Timer
	every     time.Duration
	// progress is set while a tool runs whose client wants progress.
	progress *progress
}

// progress makes the progress notifications of a running tool.
type progress struct {
	token json.RawMessage // as the client sent it
	tool  string
	since time.Time
	sent  int
}

// next returns the next notification. Its number rises each time; there is no total.
func (p *progress) next() []byte {
	p.sent++
	message, _ := json.Marshal(fmt.Sprintf("%s has been running for %s", p.tool, time.Since(p.since).Round(time.Second))) // a string always encodes
	return event(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"message":%s}}`, p.token, p.sent, message))
}

func newReply(w http.ResponseWriter, r *http.Request, mark string, id json.RawMessage, o Options) *reply {
	a := &reply{w: w, rc: http.NewResponseController(w), head: http.Header{}, mark: []byte(`"` + mark + `"`), id: id, every: o.KeepAlive}
	if acceptsStream(r) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.alive = time.AfterFunc(o.StreamAfter, func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.sendKeepAlive()
		})
	}
	return a
}

// acceptsStream reports whether the Accept header names event streams: some clients that
// accept anything read only JSON.
func acceptsStream(r *http.Request) bool {
	return strings.Contains(strings.ToLower(strings.Join(r.Header.Values("Accept"), ",")), "text/event-stream")
}

// Header implements http.ResponseWriter.
func (a *reply) Header() http.Header { return a.head }

// WriteHeader implements http.ResponseWriter.
func (a *reply) WriteHeader(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.status == 0 {
		a.status = status
	}
}

// Write implements http.ResponseWriter. The SDK writes a message at a time.
func (a *reply) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return 0, http.ErrHandlerTimeout
	}
	own := bytes.ReplaceAll(p, a.mark, a.id)
	if strings.HasPrefix(a.head.Get("Content-Type"), "text/event-stream") {
		a.passing = true
		a.begin()
		if _, err := a.w.Write(own); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	a.held = append(a.held, own...)
	return len(p), nil
}

// FlushError serves http.ResponseController.
func (a *reply) FlushError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.streaming || a.over {
		return nil
	}
	return a.rc.Flush()
}

// begin sends the head of a stream. Callers hold mu.
func (a *reply) begin() {
	if !a.streaming {
		a.streaming = true
		beginStream(a.w)
	}
}

// startProgress sends a progress notification at once, and then at least every KeepAlive.
// Without a token, or if the client does not accept a stream, it does nothing.
func (a *reply) startProgress(token json.RawMessage, tool string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.alive == nil || token == nil {
		return
	}
	a.progress = &progress{token: token, tool: tool, since: time.Now()}
	a.every -= a.every / 3
	a.sendKeepAlive()
}

// sendKeepAlive sends a progress notification or a comment, and repeats that. Callers hold mu.
func (a *reply) sendKeepAlive() {
	if a.over {
		return
	}
	a.begin()
	text := []byte(keepAliveComment)
	if a.progress != nil {
		text = a.progress.next()
	}
	if _, err := a.w.Write(text); err != nil || a.rc.Flush() != nil {
		return // the client has gone; the SDK will notice
	}
	a.alive.Reset(a.every)
}

// finish sends the answer that was held.
func (a *reply) finish() {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.over || a.passing || a.status == 0 && len(a.held) == 0: // there is no client or nothing to send
	case a.streaming:
		_, _ = a.w.Write(event(a.message()))
	default:
		setHeaders(a.w.Header(), "application/json")
		a.w.WriteHeader(max(a.status, http.StatusOK))
		_, _ = a.w.Write(a.message())
	}
	a.over = true
}

// message returns the held answer as a JSON-RPC message: the SDK refuses a request in plain
// text. Callers hold mu.
func (a *reply) message() []byte {
	if a.status < http.StatusBadRequest || strings.HasPrefix(a.head.Get("Content-Type"), "application/json") {
		return a.held
	}
	return failure(a.id, invalid("%s", bytes.TrimSpace(a.held)))
}

// drop ends the answer; nothing is written afterwards.
func (a *reply) drop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	if a.alive != nil {
		a.alive.Stop()
	}
}
