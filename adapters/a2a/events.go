package a2a

import (
	"encoding/json"
	"net/http"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
)

// events is an outlet of server-sent events, for both bindings over HTTP. The server bounds how
// long a client may read nothing.
type events struct {
	call *call
	// head and tail are around each item.
	head, tail []byte
	buf        []byte
	err        error
}

// eventBytes is how much is collected for one write.
const eventBytes = 64 << 10

func newEvents(c *call) *events {
	e := &events{call: c, head: []byte("data: "), tail: []byte("\n\n")}
	if c.rpc {
		const mark = "0"
		around := jsonrpc.AppendResult(nil, c.id, json.RawMessage(mark))
		e.head = append(e.head, around[:len(around)-len(mark+"}")]...)
		e.tail = append([]byte("}"), e.tail...)
	}
	return e
}

func (e *events) begin(cursors bool) {
	e.call.answered = true
	h := e.call.w.Header()
	setHeaders(e.call.w, wire.MediaEvents)
	h.Set("X-Accel-Buffering", "no") // so that proxies do not delay the items
	if cursors {
		h.Set(wire.ExtensionsHeader, wire.CursorExtension)
	}
	e.call.w.WriteHeader(http.StatusOK)
}

func (e *events) put(item *wire.StreamResponse) {
	e.buf = append(e.buf, e.head...)
	e.buf = item.AppendJSON(e.buf)
	if e.buf = append(e.buf, e.tail...); len(e.buf) > eventBytes {
		e.write()
	}
}

func (e *events) alive() { e.buf = append(e.buf, ": alive\n\n"...) }

func (e *events) write() {
	if e.err == nil {
		_, e.err = e.call.w.Write(e.buf)
	}
	e.buf = e.buf[:0]
}

func (e *events) flush() error {
	if e.write(); e.err == nil {
		e.err = http.NewResponseController(e.call.w).Flush()
	}
	return e.err
}
