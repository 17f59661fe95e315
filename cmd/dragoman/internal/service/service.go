package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/adapters/notify"
	"github.com/dragoman-hub/dragoman/adapters/otlp"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/adapters/peer"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/credentials"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/supervisor"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/audit"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/redact"
	"github.com/dragoman-hub/dragoman/core/trace"
	"github.com/dragoman-hub/dragoman/transports/bus"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
	"github.com/dragoman-hub/dragoman/transports/stdio"
	"github.com/dragoman-hub/dragoman/transports/web"
)

// Service is a running hub: the engine, its journal, its dialects and its listeners.
type Service struct {
	// config has the settings of the start, loaded those that were read last.
	config, loaded config.Config
	log            *slog.Logger
	hub            *hub.Hub
	journal        journal.Journal
	// piJournal records the commands of pi-server; nil if the journal is in memory.
	piJournal core.RecordLog
	dir       *os.File // the lock of the data directory, or nil
	auth      *auth.Authenticator
	rights    policy.Current
	audit     *audit.Log
	traces    *otlp.Exporter // or nil
	notifier  *notify.Notifier
	redactor  atomic.Pointer[redact.Redactor]
	counted   atomic.Pointer[hub.Hub] // counts what the audit counts
	frames    *frame.Book             // nil if none are kept

	// What the connections of a dialect share.
	covenSecrets credentials.Secrets
	parallax     parallaxState
	pi           piState
	acp          acpState
	mcp          mcpState
	a2a          a2aState

	member       *peer.Member // of the cluster; nil for a hub alone
	node         *bus.Node    // or nil
	leaveCluster func()       // or nil
	endVisits    func()       // of requests; or nil

	supervisor *supervisor.Supervisor

	tls      encryption
	files    *descriptors
	refusals *refusalLog
	// refusalPace delays the answers to refused credentials.
	refusalPace *pace
	socket      *stdio.Listener // for pi-server, or nil
	grpc        *grpcserver.Server
	servers     []*web.Server
	bound       Addresses

	endpoints []Endpoint

	ctx      context.Context //nolint:containedctx // connections end with the service
	cancel   context.CancelCauseFunc
	draining atomic.Bool
	gate     sync.Mutex // between hold and Stop
	stopping bool
	conns    sync.WaitGroup // connections in goroutines of their own
	loops    sync.WaitGroup // listeners, and watchJournal
	failed   chan error     // why the service cannot go on
}

// Start puts a hub together and returns once all listeners are bound and served. What it
// started ends with Stop. observer may be nil.
func Start(ctx context.Context, c config.Config, log *slog.Logger, observer func(*hub.Options)) (*Service, error) {
	if err := errors.Join(checkExposure(c), checkPaths(c), checkCluster(c)); err != nil {
		return nil, err
	}
	s := &Service{config: c, loaded: c, failed: make(chan error, 1), refusalPace: newPace()}
	s.log = slog.New(redact.Handler(trace.LogHandler(log.Handler(), s.traceID), s.redactor.Load))
	s.parallax.traffic = parallax.NewTraffic()
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	if err := s.start(ctx, observer); err != nil {
		stop, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return nil, errors.Join(err, s.Stop(stop, "it did not start"))
	}
	return s, nil
}

func (s *Service) start(ctx context.Context, observer func(*hub.Options)) (err error) {
	c := s.config
	s.refusals = newRefusalLog(s.log)
	if s.files, err = newDescriptors(s.refusals.refused); err != nil {
		return err
	}
	if s.covenSecrets, err = credentials.ReadSecrets(c.Coven.Secrets); err != nil {
		return err
	}
	signing, err := credentials.ReadSigningSecrets(c.Parallax.Secrets)
	if err != nil {
		return err
	}
	s.parallax.signing.Store(&signing)
	redactor, err := redactorOf(c, s.covenSecrets, signing)
	if err != nil {
		return err
	}
	s.redactor.Store(redactor)
	for _, text := range exposedFiles(c) {
		s.log.Warn(text)
	}
	certificates, err := readTLS(c)
	if err != nil {
		return err
	}
	s.useTLS(certificates)
	var listeners map[string]net.Listener
	defer func() {
		if err != nil {
			for _, l := range listeners {
				l.Close()
			}
		}
	}()
	if listeners, err = bindAll(ctx, c); err != nil {
		return err
	}
	bound := map[string]*string{"grpc_addr": &s.bound.GRPC, "http_addr": &s.bound.HTTP, "pi_addr": &s.bound.Pi}
	for key, l := range listeners {
		*bound[key] = l.Addr().String()
	}
	starting := s.answerWhileStarting(listeners)
	err = s.openHub(ctx, observer, starting)
	starting.handOver()
	if err != nil {
		return err
	}
	if c.PiSocket != "" {
		if err = s.bindSocket(c.PiSocket); err != nil {
			return fmt.Errorf("%s %s: %w", c.At("pi_socket"), c.PiSocket, err)
		}
	}
	s.supervisor = s.newSupervisor() // listeners ask it
	s.listen(listeners)
	s.supervisor.Apply(c.Agents, c.Packs)
	s.loops.Go(s.watchJournal)
	s.loops.Go(s.watchDrain)
	if err = WriteReady(c.ReadyFile, s.bound); err != nil {
		return fmt.Errorf("%s %s: %w", c.At("ready_file"), c.ReadyFile, err)
	}
	return nil
}

// bindSocket listens on a Unix socket for pi-server.
func (s *Service) bindSocket(path string) (err error) {
	if s.socket, err = stdio.Listen(path, stdio.Options{Admit: s.files.admitted}); err != nil {
		return err
	}
	s.bound.PiSocket, err = filepath.Abs(s.socket.Path()) // readers may have another working directory
	return err
}

// run serves a listener until it is closed. If it ends by itself, Failed gets the reason.
func (s *Service) run(name string, serve func() error) {
	s.loops.Go(func() {
		if err := serve(); err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			s.fail(fmt.Errorf("the %s listener ended: %w", name, err))
		}
	})
}

// fail gives Failed an error, unless it has one.
func (s *Service) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// watchDrain ends the agents and packs of the settings once the hub was drained.
func (s *Service) watchDrain() {
	select {
	case <-s.hub.Drained():
		s.supervisor.Close()
	case <-s.ctx.Done():
	}
}

// Addresses returns the bound addresses.
func (s *Service) Addresses() Addresses { return s.bound }

// Hub returns the engine.
func (s *Service) Hub() *hub.Hub { return s.hub }

// Failed gets why the service cannot go on: the error of the first listener that ended by
// itself, or of the journal that another hub has taken over.
func (s *Service) Failed() <-chan error { return s.failed }

// Kill ends the processes of agents and packs at once, also while Stop waits for them.
func (s *Service) Kill() {
	if s.supervisor != nil {
		s.supervisor.Kill()
	}
}

// Stop shuts the service down gracefully: peers are notified, running tasks may finish until
// ctx ends, then connections, listeners and journal are closed. Processes of agents and packs get
// time to end, unless Kill is called. It returns once all goroutines have ended.
func (s *Service) Stop(ctx context.Context, reason string) error {
	s.draining.Store(true)
	var errs []error
	if s.hub != nil {
		errs = append(errs, s.hub.Close(ctx, reason))
	}
	if s.leaveCluster != nil {
		s.leaveCluster()
	}
	if s.endVisits != nil {
		s.endVisits()
	}
	s.closeTraces()
	s.closeNotifier()
	if s.supervisor != nil {
		s.supervisor.Close()
	}
	for _, d := range Dialects() {
		if d.Drain != nil {
			d.Drain(s, ctx)
		}
	}
	s.gate.Lock()
	s.stopping = true
	s.gate.Unlock()
	errs = append(errs, s.closeConns())
	s.cancel(errors.New(reason))
	s.conns.Wait()
	for _, d := range Dialects() {
		if d.Close != nil {
			d.Close(s)
		}
	}
	end, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if s.socket != nil {
		errs = append(errs, s.socket.Close())
	}
	for _, w := range s.servers {
		errs = append(errs, w.Stop(end))
	}
	s.loops.Wait()
	if s.node != nil {
		s.node.Close()
	}
	if s.audit != nil {
		errs = append(errs, s.audit.Close())
	}
	if s.journal != nil {
		errs = append(errs, s.journal.Close())
	}
	if s.dir != nil {
		errs = append(errs, s.dir.Close())
	}
	return errors.Join(errs...)
}

// closeTime is how long connections have to close by themselves after the hub has ended
// their sessions.
const closeTime = 3 * time.Second

// closeConns waits up to closeTime until the connections have closed by themselves, and then
// closes the others.
func (s *Service) closeConns() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.conns.Wait()
	}()
	if s.grpc != nil {
		err = s.grpc.Stop(ctx)
	}
	select {
	case <-closed:
	case <-ctx.Done():
		s.cancel(ctx.Err())
		<-closed
	}
	return err
}
