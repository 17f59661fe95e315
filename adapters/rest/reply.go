package rest

import (
	"io"
	"net/http"
	"time"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Media types of answers.
const (
	jsonType    = "application/json"
	problemType = "application/problem+json"
	eventType   = "text/event-stream"
	lineType    = "application/x-ndjson"
)

// reply answers with a JSON document.
func (a *api) reply(w http.ResponseWriter, status int, v any) error {
	text, err := strictjson.Marshal(v)
	if err != nil {
		return err
	}
	a.write(w, status, jsonType, append(text, '\n')) // for terminals
	return nil
}

// write answers with a complete document.
func (a *api) write(w http.ResponseWriter, status int, media string, document []byte) {
	setHeaders(w, media)
	w.WriteHeader(status)
	_, _ = a.outlet(w).Write(document) // the client may have gone
}

func setHeaders(w http.ResponseWriter, media string) {
	h := w.Header()
	h.Set("Content-Type", media)
	h["Cache-Control"], h["X-Content-Type-Options"] = noStore, noSniff
}

// Values of headers that every answer has.
var noStore, noSniff = []string{"no-store"}, []string{"nosniff"}

// outlet writes a response. Write returns an error if the client reads nothing within the
// timeout.
type outlet struct {
	w       io.Writer
	rc      *http.ResponseController
	timeout time.Duration
}

func (a *api) outlet(w http.ResponseWriter) outlet {
	return outlet{w, http.NewResponseController(w), a.opts.WriteTimeout}
}

// outletBytes is how much a client must read within the timeout. It is so small that only a
// client that has stopped reading does not.
const outletBytes = 32 << 10

// Write implements io.Writer.
func (o outlet) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		_ = o.rc.SetWriteDeadline(time.Now().Add(o.timeout)) // not every ResponseWriter supports it
		var m int
		m, err = o.w.Write(p[n:min(len(p), n+outletBytes)])
		n += m
	}
	return n, err
}

// flush sends what was written.
func (o outlet) flush() error {
	_ = o.rc.SetWriteDeadline(time.Now().Add(o.timeout))
	return o.rc.Flush()
}
