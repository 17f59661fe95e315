package mcp

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/dragoman-hub/dragoman/core/hub"
)

// keepAliveComment is a comment in a stream.
const keepAliveComment = ": alive\n\n"

// toolsChanged is the notification that the tools have changed.
const toolsChanged = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`

// event returns a message as an event of a stream. It must not have line breaks.
func event(message []byte) []byte { return fmt.Appendf(nil, "event: message\ndata: %s\n\n", message) }

// beginStream sends the head of a stream.
func beginStream(w http.ResponseWriter) {
	setHeaders(w.Header(), "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // so that proxies do not delay the events
	w.WriteHeader(http.StatusOK)
}

// listen serves the notification stream of a client with a version before sessionless: it
// reports changes of the tools.
func (s *Server) listen(w http.ResponseWriter, r *http.Request) {
	h, unknown := s.authenticate(r)
	if unknown != nil {
		s.refuseToken(w, r, message{}, unknown)
		return
	}
	if !acceptsStream(r) {
		s.refuse(w, http.StatusNotAcceptable, nil, invalid("GET returns an event stream: send Accept: text/event-stream, or POST a message"))
		return
	}
	ctx, end, full := h.begin(r.Context(), &call{session: r.Header.Get(sessionHeader), stream: true})
	if full != nil {
		s.refuse(w, http.StatusTooManyRequests, nil, &jsonrpc.Error{Code: busy, Message: full.Error()})
		return
	}
	defer end()
	changes := h.watch() // before the client gets the head of the stream
	defer changes.Close(nil)
	rc := http.NewResponseController(w)
	send := func(text []byte) error {
		if _, err := w.Write(text); err != nil {
			return err
		}
		return rc.Flush()
	}
	beginStream(w)
	if send([]byte(keepAliveComment)) != nil {
		return
	}
	follow(ctx, changes, s.opts.KeepAlive, func(changed bool) error {
		if changed {
			return send(event([]byte(toolsChanged)))
		}
		return send([]byte(keepAliveComment))
	})
}

// watch returns a session that receives changes of the holder's tools. The caller closes it.
func (h *holder) watch() *hub.Session {
	b := h.session.Child()
	b.WatchTools()
	return b
}

// follow calls notify(true) when the tools have changed, and notify(false) when they have
// not for silence; zero means no limit. It returns when notify returns an error, or ctx or
// the session ends.
func follow(ctx context.Context, changes *hub.Session, silence time.Duration, notify func(changed bool) error) {
	for {
		changed, err := next(ctx, changes, silence)
		if err != nil || notify(changed) != nil {
			return
		}
	}
}

// next waits for a change of the tools, and returns false if there was none for silence.
func next(ctx context.Context, s *hub.Session, silence time.Duration) (changed bool, err error) {
	window := ctx
	if silence > 0 {
		var cancel context.CancelFunc
		window, cancel = context.WithTimeout(ctx, silence)
		defer cancel()
	}
	for {
		b, err := s.Next(window)
		switch {
		case err != nil && ctx.Err() == nil && window.Err() != nil:
			return false, nil
		case err != nil:
			return false, err
		case b.ToolsChanged:
			return true, nil
		}
	}
}
