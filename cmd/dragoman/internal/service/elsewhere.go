package service

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/rpc"
	"github.com/dragoman-hub/dragoman/transports/web"
)

// A request whose state is at another hub of the cluster is answered there: it goes over a tunnel,
// with the principal that was authenticated here.

// httpService is what other hubs visit with requests.
const httpService = "http"

// visitorKey is the context key of the principal of a request that another hub has authenticated.
type visitorKey struct{}

// visitorOf returns the principal of a request that came over another hub.
func visitorOf(ctx context.Context) (p core.Principal, ok bool) {
	p, ok = ctx.Value(visitorKey{}).(core.Principal)
	return p, ok
}

// forwarder returns forward, or nil for a hub alone.
func (s *Service) forwarder() func(http.ResponseWriter, *http.Request, core.Principal, string) bool {
	if s.member == nil {
		return nil
	}
	return s.forward
}

// forward has a request answered by another hub. It reports false for one that has come from
// another hub, which is not passed on again.
func (s *Service) forward(w http.ResponseWriter, r *http.Request, p core.Principal, at string) bool {
	if _, visiting := visitorOf(r.Context()); visiting {
		return false
	}
	transport := &http.Transport{
		DisableKeepAlives: true, // each request has its principal
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := s.hub.RPC().Dial(at, httpService, p)
			if err != nil {
				return nil, err
			}
			c, _ := netConn(ctx, conn)
			return c, nil
		},
	}
	defer transport.CloseIdleConnections()
	proxy := httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL.Scheme, pr.Out.URL.Host = "http", "hub"
			pr.Out.Host = pr.In.Host // descriptions of the hub have addresses as the client knows them
		},
		ModifyResponse: func(resp *http.Response) error {
			if resp.StatusCode < http.StatusBadRequest {
				web.Authenticated(r) // there, with a token that this hub does not know
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			s.hub.Count("http.forward.failed")
			s.log.Info("another hub has not answered a request", "hub", at, "error", err)
			w.Header().Set("Retry-After", "1")
			why := core.NewFault(core.CodeUnreachable, "hub %s, which has what the request is about, cannot be reached: ask again", at).Because(err)
			web.Problem(w, http.StatusServiceUnavailable, string(why.Code), why.Message)
		},
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // the other hub has deadlines of its own
	proxy.ServeHTTP(w, r)
	return true
}

// hostHTTP serves requests that came to other hubs.
func (s *Service) hostHTTP(handler http.Handler) {
	l := &visitors{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{
		Handler: handler, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: 10 * time.Second,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, visitorKey{}, c.(visitorConn).by)
		},
	}
	s.loops.Go(func() {
		if err := server.Serve(l); !errors.Is(err, net.ErrClosed) && !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("requests of other hubs are not served any more", "error", err)
		}
	})
	s.endVisits = func() {
		l.once.Do(func() { close(l.closed) })
		_ = server.Close()
	}
	s.hub.RPC().Serve(httpService, func(ctx context.Context, by core.Principal, conn rpc.Conn) {
		c, sent := netConn(ctx, conn)
		select {
		case l.conns <- visitorConn{c, by}:
		case <-l.closed:
			_ = c.Close()
		case <-ctx.Done():
			_ = c.Close()
		}
		<-sent
	})
}

// visitorConn is the connection of one request.
type visitorConn struct {
	net.Conn
	by core.Principal
}

// visitors is a listener that accepts those that other hubs pass on.
type visitors struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

// Accept implements [net.Listener].
func (l *visitors) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *visitors) Close() error { return nil }

// Addr implements [net.Listener].
func (l *visitors) Addr() net.Addr { return &net.UnixAddr{Name: "other hubs", Net: "tunnel"} }

// netConn returns a connection whose bytes go over a tunnel. Both end together; sent is closed once
// the tunnel has all that was written.
func netConn(ctx context.Context, conn rpc.Conn) (_ net.Conn, sent <-chan struct{}) {
	own, other := net.Pipe()
	all := make(chan struct{})
	ctx = context.WithoutCancel(ctx) // the tunnel ends with its hubs
	go func() {
		defer other.Close()
		for {
			m, err := conn.Receive(ctx)
			if err != nil {
				return
			}
			_, _ = other.Write(m) // a server that has answered early reads no more
		}
	}()
	go func() {
		defer close(all)
		defer conn.Close(link.Reason{Cause: link.Normal})
		buf := make([]byte, 32<<10)
		for {
			n, err := other.Read(buf)
			if err == nil {
				err = conn.Send(ctx, buf[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	return own, all
}
