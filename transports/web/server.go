package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
)

// handlerGrace is how long Stop waits for handlers after it has closed their connections.
const handlerGrace = 5 * time.Second

// errStopping is the cause with which Stop ends the context of a streaming request.
var errStopping = errors.New("the server is stopping")

// Server is an HTTP server. Make one with New.
type Server struct {
	opts   Options
	guard  guard
	router *chi.Mux
	http   *http.Server

	// stopping ends when Stop begins.
	stopping context.Context //nolint:containedctx // the lifetime of the server, which ends with Stop
	stop     context.CancelFunc

	mu     sync.Mutex
	silent map[net.Conn]struct{} // connections without a request so far
	busy   int                   // handlers that run
	idle   chan struct{}         // closed when busy is 0 again; nil unless Stop waits
}

// New returns a server without routes.
func New(o Options) *Server {
	o = o.withDefaults()
	s := &Server{opts: o, guard: newGuard(o), router: chi.NewRouter(), silent: make(map[net.Conn]struct{})}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.router.NotFound(s.notFound)
	s.router.MethodNotAllowed(s.notAllowed)
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		TLSConfig:         o.TLS,
		ReadHeaderTimeout: o.ReadHeaderTimeout,
		IdleTimeout:       o.IdleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          o.ErrorLog,
		ConnState:         s.watch,
		ConnContext:       withConn,
		Protocols:         new(http.Protocols),
	}
	s.http.Protocols.SetHTTP1(true) // one connection is one peer, and WebSockets need HTTP/1.1
	return s
}

// Router returns the router, for mounting routes before Serve. Requests have passed all
// checks when they reach a route.
func (s *Server) Router() chi.Router { return s.router }

// Serve accepts connections until l fails, whose error it returns, or until Stop begins;
// then it returns nil. It closes l. It may be called for several listeners; MaxConnections
// applies to each.
func (s *Server) Serve(l net.Listener) error {
	d := newListener(l, &s.opts)
	defer d.Close()
	var err error
	if s.opts.TLS != nil {
		err = s.http.ServeTLS(d, "", "")
	} else {
		err = s.http.Serve(d)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Stop accepts no more requests and waits for those under way. It ends the context of
// requests with a streaming answer, that is one that was flushed. Hijacked connections, such
// as WebSockets, must be closed by their owners: Stop neither closes them nor waits for
// them. If ctx ends first, the connections are closed and an error is returned; handlers
// have five more seconds to end.
func (s *Server) Stop(ctx context.Context) error {
	s.stop()
	s.mu.Lock()
	for conn := range s.silent { // Shutdown would wait 5 s for each of them
		conn.Close()
	}
	s.mu.Unlock()
	err := s.http.Shutdown(ctx)
	if err == nil {
		return nil
	}
	s.http.Close()
	timer := time.NewTimer(handlerGrace)
	defer timer.Stop()
	select {
	case <-s.allDone():
		return fmt.Errorf("stop web: requests were cut off: %w", err)
	case <-timer.C:
		return fmt.Errorf("stop web: a handler still runs %v after its connection was cut: %w", handlerGrace, err)
	}
}

// serve handles every request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.enter()
	leave := sync.OnceFunc(s.leave)
	defer leave()
	r, stream, release := untilStop(s.stopping, r)
	defer release()
	c := r.Context().Value(connKey{}).(*conn)
	c.Serve(true)
	defer c.Serve(false)
	a := &answer{
		ResponseWriter: w, rc: http.NewResponseController(w), timeout: s.opts.WriteTimeout, stream: stream, leave: leave,
		head: s.hasHead(r), options: r.Method == http.MethodOptions,
	}
	defer a.finish()
	b := limitBody(a, r, s.opts)
	a.body = b
	defer b.release()
	defer b.leave()
	defer s.recovered(a, r)
	if !c.admits(a, r, s.opts.Always) {
		return
	}
	if denied := s.guard.host(r); denied != nil {
		s.deny(a, r, denied)
		return
	}
	origin, denied := s.guard.origin(r)
	if denied == nil {
		denied = s.guard.site(r, origin)
	}
	if denied != nil {
		s.deny(a, r, denied)
		return
	}
	if origin != "" && allow(a, r, origin) {
		return
	}
	if !b.fits(r) {
		return
	}
	a.stream = func() {
		b.release() // what answers in a stream has read its request
		stream()
	}
	s.asGet(r)
	s.router.ServeHTTP(a, r)
}

// deny answers and reports a request that is refused.
func (s *Server) deny(a *answer, r *http.Request, denied *refusal) {
	a.refuse(denied.status, denied.code, denied.detail)
	s.opts.OnDenied(r, denied.status, denied.detail)
}

// recovered is deferred around a route.
func (s *Server) recovered(a *answer, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(v)
	}
	s.opts.OnPanic(r, v, debug.Stack())
	if a.begun && !a.hijacked && !a.sealed {
		panic(http.ErrAbortHandler) // the client sees that the answer was cut
	}
	a.refuse(http.StatusInternalServerError, "internal", "the server failed to answer this request")
}

// notFound answers if there is no route.
func (s *Server) notFound(w http.ResponseWriter, r *http.Request) {
	Problem(w, http.StatusNotFound, "unsupported", fmt.Sprintf("no route %s", r.URL.Path))
}

// notAllowed answers requests for a path that has only other methods, and lists those.
func (s *Server) notAllowed(w http.ResponseWriter, r *http.Request) {
	var use []string
	for _, m := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		if s.router.Match(chi.NewRouteContext(), m, r.URL.Path) {
			use = append(use, m)
		}
	}
	allow := strings.Join(use, ", ")
	w.Header().Set("Allow", allow)
	Problem(w, http.StatusMethodNotAllowed, "unsupported", fmt.Sprintf("%s is not possible at %s: use %s", r.Method, r.URL.Path, allow))
}

// watch maintains the set of connections without a request so far.
func (s *Server) watch(conn net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state != http.StateNew {
		delete(s.silent, conn)
		return
	}
	s.silent[conn] = struct{}{}
	if s.stopping.Err() != nil {
		conn.Close()
	}
}

// enter counts a handler that begins.
func (s *Server) enter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy++
}

// leave counts a handler that ends, or whose connection was hijacked.
func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	if s.busy == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// allDone returns a channel that is closed when no handler runs.
func (s *Server) allDone() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	done := make(chan struct{})
	if s.busy == 0 {
		close(done)
		return done
	}
	if s.idle == nil {
		s.idle = make(chan struct{})
	}
	return s.idle
}
