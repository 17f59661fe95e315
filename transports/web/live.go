package web

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// DefaultStall is how long a streaming answer waits for a client that does not read.
const DefaultStall = 30 * time.Second

// live is a streaming answer: each piece is sent at once.
type live struct {
	mu    sync.Mutex
	w     http.ResponseWriter
	rc    *http.ResponseController
	stall time.Duration
	err   error // the first, after which nothing is written
}

// begin sends the head of an answer with a media type.
func begin(l *live, w http.ResponseWriter, media string) error {
	l.w, l.rc, l.stall = w, http.NewResponseController(w), DefaultStall
	h := w.Header()
	h.Set("Content-Type", media)
	h.Set("Cache-Control", "no-cache, no-store")
	h.Set("X-Accel-Buffering", "no") // so that proxies do not delay the pieces
	h.Del("Content-Length")
	w.WriteHeader(http.StatusOK)
	if err := l.rc.Flush(); err != nil {
		return fmt.Errorf("begin a stream: %w", err)
	}
	return nil
}

// SetStall sets how long a write waits for a client that does not read, instead of
// [DefaultStall].
func (l *live) SetStall(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stall = d
}

// write sends p at once. Every error is final.
func (l *live) write(p []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	// A writer without deadlines is not a socket and has limits of its own.
	_ = l.rc.SetWriteDeadline(time.Now().Add(l.stall))
	_, l.err = l.w.Write(p)
	if l.err == nil {
		l.err = l.rc.Flush()
	}
	return l.err
}
