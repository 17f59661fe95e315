package service

import (
	"net/http"
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// webSocketLink returns the options of the link of a WebSocket.
func (s *Service) webSocketLink() link.Options {
	c := s.config.WebSocket
	return link.Options{PingEvery: c.PingInterval, PingTimeout: c.PingTimeout, WriteTimeout: c.WriteTimeout, Memory: s.hub.Memory()}
}

// upgrade upgrades a request to a WebSocket, or answers it and returns nil. A stopping hub
// upgrades none.
func (s *Service) upgrade(w http.ResponseWriter, r *http.Request, o ws.AcceptOptions) *ws.Conn {
	if s.draining.Load() {
		plainText(w, http.StatusServiceUnavailable, "Server is shutting down\n") // as pi clients know it
		return nil
	}
	if o.Hosts, o.Origins = s.config.Hosts, s.config.Origins; len(o.Hosts) > 0 {
		o.Hosts = append(slices.Clip(o.Hosts), "localhost", "127.0.0.1", "::1") // always allowed
	}
	o.Subprotocol = auth.Subprotocol(r.Header.Values("Sec-WebSocket-Protocol"))
	conn, err := ws.Accept(w, r, o)
	if err != nil {
		s.log.Info("a WebSocket was refused", "path", pathOf(r), "error", err)
		return nil
	}
	return conn
}

// hold serves a WebSocket in its own goroutine, so that the HTTP server can free the
// request. Stop waits for it.
func (s *Service) hold(serve func()) {
	s.gate.Lock()
	stopping := s.stopping
	if !stopping {
		s.conns.Go(serve)
	}
	s.gate.Unlock()
	if stopping {
		serve() // the context has ended: only tells the peer
	}
}
