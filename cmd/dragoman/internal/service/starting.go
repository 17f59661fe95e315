package service

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
	"github.com/dragoman-hub/dragoman/transports/web"
)

// startAnswers refuse what comes to a hub that is not ready yet, with the reason: one of a cluster may
// wait for other hubs for as long as they are away, one alone may read a large journal. The listeners stay
// open when the hub itself takes them over.
type startAnswers struct {
	// public says that anybody may be told which hubs are absent.
	public  bool
	reason  atomic.Pointer[string]
	lent    []*lentListener
	over    chan struct{}  // closed by handOver
	served  atomic.Bool    // somebody may have been answered
	serving sync.WaitGroup // the listeners
	end     func()         // stops the servers once the listeners are handed over
}

// readsJournal is the reason while the hub waits for no other one.
const readsJournal = "this hub starts: it reads its journal"

// startMoment is how long clients wait for a hub alone before they are told that it starts: most starts are
// shorter.
const startMoment = time.Second

// startLinger is how long connections that came before the hub was ready may still be answered.
const startLinger = 2 * time.Second

// answerWhileStarting serves the listeners until handOver.
func (s *Service) answerWhileStarting(listeners map[string]net.Listener) *startAnswers {
	a := &startAnswers{public: !s.config.Authenticates(), over: make(chan struct{})}
	a.reads()
	c, moment := s.config, startMoment
	if c.Clustered() {
		moment = 0
	}
	w := web.New(web.Options{
		TLS: s.tls.config(tls.VersionTLS12, "http/1.1"), Hosts: c.Hosts, Origins: c.Origins, HostsSetting: "the setting hosts", OriginsSetting: "the setting origins",
		MaxConnections: c.HTTP.Connections, MaxBodyBytes: math.MaxInt64, OnRefused: s.tooMany("http.connections"), Admit: s.files.admit, Always: alwaysAnswered,
	})
	w.Router().NotFound(a.refuse)
	w.Router().Get(HealthPath, func(w http.ResponseWriter, _ *http.Request) { plainText(w, http.StatusOK, "ok\n") })
	w.Router().Get(gatewayHealth, func(w http.ResponseWriter, _ *http.Request) { plainText(w, http.StatusOK, "OK") })
	for _, path := range []string{ReadyPath, gatewayReady} {
		w.Router().Get(path, func(w http.ResponseWriter, _ *http.Request) {
			plainText(w, http.StatusServiceUnavailable, *a.reason.Load()+"\n")
		})
	}
	g := grpcserver.New(grpcserver.Options{
		MaxConnections: c.GRPC.Connections, TLS: s.tls.config(tls.VersionTLS13, "h2"),
		Unavailable: func() string { return *a.reason.Load() }, OnRefused: s.tooMany("grpc.connections"), AdmitConn: s.files.admitted,
	})
	for name, l := range listeners {
		serve := w.Serve
		if name == "grpc_addr" {
			serve = g.Serve
		}
		lent := &lentListener{TCPListener: l.(*net.TCPListener)}
		a.lent = append(a.lent, lent)
		a.serving.Go(func() {
			select {
			case <-time.After(moment):
			case <-a.over:
				return
			}
			a.served.Store(true)
			if err := serve(lent); err != nil && !errors.Is(err, net.ErrClosed) {
				s.log.Warn("clients are not told that this hub starts", "listener", name, "error", err)
			}
		})
	}
	a.end = func() {
		s.loops.Go(func() {
			select {
			case <-time.After(startLinger):
			case <-s.ctx.Done():
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = w.Stop(ctx) // what is cut off was to be refused
			_ = g.Stop(ctx)
		})
	}
	return a
}

// waits makes other hubs the reason.
func (a *startAnswers) waits(w nats.Wait) {
	reason := "this hub starts, " + w.String()
	if a.public {
		reason = "this hub starts, " + w.Full()
	}
	a.reason.Store(&reason)
}

// reads makes the journal the reason.
func (a *startAnswers) reads() {
	reason := readsJournal
	a.reason.Store(&reason)
}

// refuse answers a request, also one for a WebSocket.
func (a *startAnswers) refuse(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "1")
	w.Header().Set("Connection", "close") // the next request comes to the hub itself
	web.Problem(w, http.StatusServiceUnavailable, string(core.CodeOverloaded), *a.reason.Load())
}

// handOver returns once the listeners are free for the hub, and open. What was accepted until then is
// still answered.
func (a *startAnswers) handOver() {
	close(a.over)
	for _, l := range a.lent {
		l.Close()
	}
	a.serving.Wait()
	for _, l := range a.lent {
		_ = l.SetDeadline(time.Time{}) // it fails on a closed one, which is noticed soon enough
	}
	if a.served.Load() {
		a.end()
	}
}

// lentListener is a listener whose Close ends Accept, and leaves it open for the next one.
type lentListener struct {
	*net.TCPListener
	closed atomic.Bool
}

// Accept implements net.Listener.
func (l *lentListener) Accept() (net.Conn, error) {
	conn, err := l.TCPListener.Accept()
	if err != nil && l.closed.Load() {
		return nil, net.ErrClosed
	}
	return conn, err
}

// Close implements net.Listener.
func (l *lentListener) Close() error {
	if l.closed.Swap(true) {
		return nil // the next one may use it already
	}
	return l.SetDeadline(time.Unix(1, 0))
}
