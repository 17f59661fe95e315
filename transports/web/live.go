package web

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// DefaultStall is how long a streaming answer waits for a client that does not
// read.
const DefaultStall = 30 * time.Second

// live is an answer that is written piece by piece, each piece at once.
type live struct {
	mu    sync.Mutex
	w     http.ResponseWriter
	rc    *http.ResponseController
	stall time.Duration
	err   error // the first; nothing is written after it
}

// begin begins an answer of a media type and sends its head.
func begin(l *live, w http.ResponseWriter, media string) error {
	l.w, l.rc, l.stall = w, http.NewResponseController(w), DefaultStall
	h := w.Header()
	h.Set("Content-Type", media)
	h.Set("Cache-Control", "no-cache, no-store")
	h.Set("X-Accel-Buffering", "no") // or a proxy would hold the pieces back
	h.Del("Content-Length")
	w.WriteHeader(http.StatusOK)
	if err := l.rc.Flush(); err != nil {
		return fmt.Errorf("begin a stream: %w", err)
	}
	return nil
}

// SetStall changes how long a write may wait for a client that does not read, from
// [DefaultStall].
func (l *live) SetStall(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stall = d
}

// write sends p at once. After an error the stream is broken for good.
func (l *live) write(p []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	// A writer that knows no deadline is no socket; it stalls by its own rules.
	_ = l.rc.SetWriteDeadline(time.Now().Add(l.stall))
	_, l.err = l.w.Write(p)
	if l.err == nil {
		l.err = l.rc.Flush()
	}
	return l.err
}
