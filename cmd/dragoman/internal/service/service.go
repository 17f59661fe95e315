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
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/adapters/parallax/control"
	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/access"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/usage"
	"github.com/dragoman-hub/dragoman/schemas"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
	"github.com/dragoman-hub/dragoman/transports/stdio"
	"github.com/dragoman-hub/dragoman/transports/web"
)

// Service is a running hub: the engine, its journal and its listeners. The
// commands serve, demo and bench start one, and so do the tests.
type Service struct {
	config config.Config
	log    *slog.Logger
	hub    *hub.Hub
	kept   journal.Journal
	dir    *os.File // the lock of the data directory, or nil
	pi     *pi.Server
	// snapshots and lifecycle are what pi clients get that do not say.
	snapshots pi.Snapshots
	lifecycle pi.Lifecycle
	peers     *acp.Peers
	mcp       *mcp.Server
	// secrets are what Coven agents are told in Welcome, and nobody else.
	secrets secrets
	// tokens are who may come in; atMCP are those let in there, by their hash.
	tokens  access.Tokens
	atMCP   map[access.Hash]admission
	traffic *parallax.Traffic
	refused parallax.Refusals
	control *control.Control // of Parallax, or nil
	// signing are what agents of Parallax sign with.
	signing atomic.Pointer[signingSecrets]
	// loaded are the settings as they were read last, of which config has those that
	// hold since the start.
	loaded config.Config
	acp    *acp.HTTP

	files    *descriptors
	refusals *refusalLog
	socket   *stdio.Listener // for pi-server, or nil
	grpc     *grpcserver.Server
	servers  []*web.Server
	bound    Addresses

	ctx      context.Context //nolint:containedctx // it is the life of the service: connections end with it
	cancel   context.CancelCauseFunc
	draining atomic.Bool
	gate     sync.Mutex // between hold and Stop
	stopping bool
	conns    sync.WaitGroup // connections that the listeners handed over
	loops    sync.WaitGroup // listeners, and what looks at the journal
	failed   chan error     // the first listener that ended by itself
}

// Start puts a hub together and returns once all listen. What it started ends
// with Stop. observer may be nil.
func Start(ctx context.Context, c config.Config, log *slog.Logger, observer func(*hub.Options)) (*Service, error) {
	if err := checkExposure(c); err != nil {
		return nil, err
	}
	s := &Service{config: c, loaded: c, traffic: parallax.NewTraffic(), log: log, failed: make(chan error, 1), atMCP: map[access.Hash]admission{}}
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
	if s.secrets, err = readSecrets(c.Coven.Secrets); err != nil {
		return err
	}
	signing, err := readSigningSecrets(c.Parallax.Secrets)
	if err != nil {
		return err
	}
	s.signing.Store(&signing)
	if err = s.authorize(c.Auth.Tokens); err != nil {
		return err
	}
	var listeners map[string]net.Listener
	defer func() {
		if err != nil {
			for _, l := range listeners {
				l.Close()
			}
		}
	}()
	if listeners, err = listenAll(ctx, c); err != nil {
		return err
	}
	if err = s.openHub(ctx, observer); err != nil {
		return err
	}
	if c.PiSocket != "" {
		if s.socket, err = stdio.Listen(c.PiSocket, stdio.Options{Admit: s.files.admitted}); err != nil {
			return fmt.Errorf("%s %s: %w", c.At("pi_socket"), c.PiSocket, err)
		}
		if s.bound.PiSocket, err = filepath.Abs(s.socket.Path()); err != nil { // who reads it may be elsewhere
			return fmt.Errorf("%s %s: %w", c.At("pi_socket"), c.PiSocket, err)
		}
	}
	if l := listeners["grpc_addr"]; l != nil {
		s.bound.GRPC = l.Addr().String()
	}
	if l := listeners["http_addr"]; l != nil {
		s.bound.HTTP = l.Addr().String()
	}
	if l := listeners["pi_addr"]; l != nil {
		s.bound.Pi = l.Addr().String()
	}
	s.open(listeners)
	s.loops.Go(s.watchJournal)
	if err = WriteReady(c.ReadyFile, s.bound); err != nil {
		return fmt.Errorf("%s %s: %w", c.At("ready_file"), c.ReadyFile, err)
	}
	return nil
}

func (s *Service) openHub(ctx context.Context, observer func(*hub.Options)) (err error) {
	c := s.config
	keep := journal.Retention{Age: c.Journal.Age, Bytes: c.Journal.Bytes}
	var spendings usage.Store
	var commands core.RecordLog
	id := core.NewID()
	if c.DataDir != "" {
		if s.dir, err = lockDir(c.DataDir); errors.Is(err, errTaken) {
			return fmt.Errorf("another hub uses the data directory %s: stop it, or name another with %s", c.DataDir, c.At("data_dir").Where())
		} else if err != nil {
			return fmt.Errorf("%s %s: %w; name a directory that you may write into", c.At("data_dir"), c.DataDir, err)
		}
		if id, err = stableID(c.DataDir); err != nil {
			return err
		}
	}
	if c.DataDir == "" && c.Journal.NATSURL == "" {
		s.kept = journal.NewMemory(keep)
	} else {
		sync, err := nats.ParseSync(c.Journal.Sync)
		if err != nil {
			return err
		}
		j, err := nats.Open(ctx, nats.Options{
			Dir: c.DataDir, URL: c.Journal.NATSURL, Name: c.Journal.Name, Sync: sync, Keep: keep, Log: s.log,
			KeepUsage: usage.Retention{Age: c.Usage.Age, Bytes: c.Usage.Bytes},
			Logs:      map[string]journal.Retention{pi.Name: {Age: c.Journal.Age, Bytes: c.Pi.JournalBytes}},
		})
		if err != nil {
			return fmt.Errorf("opening the journal: %w", err)
		}
		s.kept, spendings, commands = j, j.Usage(), j.Log(pi.Name)
	}
	var disconnect hub.Disconnect
	if err := disconnect.UnmarshalText([]byte(c.Limits.Disconnect)); err != nil {
		return fmt.Errorf("limits.disconnect: %w", err)
	}
	keepTerms, terms, err := termsIn(c.DataDir)
	if err != nil {
		return err
	}
	opts := hub.Options{
		Terms: terms, KeepTerms: keepTerms, ID: id, Journal: s.kept, Log: s.log, Rules: policy.Rules{Hops: c.Limits.Hops}, Schema: schemas.Compile,
		UsageStore: spendings, Budgets: c.Budgets.Limits(),
		Limits: hub.Limits{
			QueueLength: c.Limits.QueueLength, Retries: orNever(c.Limits.Retries), CancelGrace: c.Limits.CancelGrace, SlotGrace: c.Limits.SlotGrace,
			Disconnect: disconnect,
			Packs:      c.Limits.Packs, PackTools: c.Limits.PackTools, PackCalls: c.Limits.PackCalls,
			ToolTimeout: c.Limits.ToolTimeout, MaxToolTimeout: c.Limits.MaxToolTimeout,
			ApprovalTimeout: c.Limits.ApprovalTimeout, QuestionTimeout: c.Limits.QuestionTimeout, Questions: c.Limits.Questions, CauseMemory: orNever(c.Limits.CauseMemory), TaskBytes: c.Limits.TaskBytes, HistoryBytes: orNever(c.Limits.HistoryBytes),
			RequestBytes: c.Limits.RequestBytes, MaxDeadline: c.Limits.MaxDeadline, Threads: c.Limits.Threads,
			JournalLag: orNever(c.Journal.Lag), KeepNotices: c.Limits.KeepNotices, NoticeBytes: c.Limits.NoticeBytes,
			FinishedTasks: c.Limits.FinishedTasks, FinishedBytes: c.Limits.FinishedBytes, UnrecordedBytes: c.Limits.UnrecordedBytes,
		},
	}
	if observer != nil {
		observer(&opts)
	}
	s.hub = hub.New(opts)
	if err := s.hub.Recover(ctx); err != nil {
		return fmt.Errorf("reading the journal: %w", err)
	}
	s.pi = pi.NewServer(s.hub, piOptions(c.Pi, pi.Options{
		Version: Version, QueuePrompts: true, DrainTimeout: c.StopTimeout, Link: webSocketLink(c.WebSocket), Log: s.log, Journal: commands, JournalPath: journalPath(c), Reaper: reaperCommand(), Dialects: agentDialects(),
	}))
	if s.snapshots, err = pi.ParseSnapshots(c.Pi.Snapshots); err != nil {
		return fmt.Errorf("pi.snapshots: %w", err)
	}
	if s.lifecycle, err = pi.ParseLifecycle(c.Pi.Lifecycle); err != nil {
		return fmt.Errorf("pi.lifecycle: %w", err)
	}
	if err := s.pi.Recover(ctx); err != nil {
		return err
	}
	// What was read is garbage by now, several times what stays of it: without this it
	// would be minutes until the system had it back.
	debug.FreeOSMemory()
	s.peers = acp.NewPeers(acp.PeersOptions{KeepResults: c.ACP.KeepResults, KeepIDs: c.ACP.KeepIDs})
	s.mcp = s.newMCP()
	s.admitToMCP()
	return nil
}

// errTaken says that another hub uses a data directory.
var errTaken = errors.New("another hub uses it")

// lockDir makes a data directory when it is missing, and sees to it that one hub
// at a time uses it: until what it returns is closed, or the process ends. It returns
// errTaken when another one does.
func lockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, errTaken
	}
	return f, nil
}

// stableID returns the id of the hub that keeps its data in dir, so that agents
// see the same hub after a restart.
func stableID(dir string) (string, error) {
	path := filepath.Join(dir, "id")
	if b, err := os.ReadFile(path); err == nil && len(b) > 0 {
		return string(b), nil
	}
	id := core.NewID()
	if err := os.WriteFile(path, []byte(id), 0o600); err != nil {
		return "", fmt.Errorf("keeping the id of the hub: %w", err)
	}
	return id, nil
}

// run serves until the listener is stopped; what ends it otherwise is told to
// Failed.
func (s *Service) run(name string, serve func() error) {
	s.loops.Go(func() {
		if err := serve(); err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			select {
			case s.failed <- fmt.Errorf("the %s listener ended: %w", name, err):
			default:
			}
		}
	})
}

// Addresses is what the service listens on.
func (s *Service) Addresses() Addresses { return s.bound }

// Hub is the engine.
func (s *Service) Hub() *hub.Hub { return s.hub }

// Failed tells when a listener ended by itself.
func (s *Service) Failed() <-chan error { return s.failed }

// Stop takes the service down in good order: everybody is told, running tasks may
// finish until ctx ends, then connections, listeners and journal close. It
// returns once nothing runs any more.
func (s *Service) Stop(ctx context.Context, reason string) error {
	s.draining.Store(true)
	var errs []error
	if s.hub != nil {
		errs = append(errs, s.hub.Close(ctx, reason))
	}
	if s.pi != nil {
		s.pi.Drain(ctx)
	}
	s.gate.Lock()
	s.stopping = true
	s.gate.Unlock()
	if s.acp != nil {
		s.acp.Close()
	}
	if s.mcp != nil {
		s.mcp.Close()
	}
	if s.control != nil {
		s.conns.Go(func() { // beside those who say goodbye, for as long
			ctx, cancel := context.WithTimeout(context.Background(), goodbyeTime)
			defer cancel()
			s.control.Close(ctx)
		})
	}
	errs = append(errs, s.sayGoodbye())
	s.cancel(errors.New(reason))
	s.conns.Wait()
	if s.pi != nil {
		s.pi.Close()
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
	if s.kept != nil {
		errs = append(errs, s.kept.Close())
	}
	if s.dir != nil {
		errs = append(errs, s.dir.Close())
	}
	return errors.Join(errs...)
}

// goodbyeTime is how long connections have to say goodbye in their own way, once
// the hub has ended their sessions.
const goodbyeTime = 3 * time.Second

// sayGoodbye waits until the connections have ended by themselves, for a while.
func (s *Service) sayGoodbye() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), goodbyeTime)
	defer cancel()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		s.conns.Wait()
	}()
	if s.grpc != nil {
		err = s.grpc.Stop(ctx)
	}
	select {
	case <-gone:
	case <-ctx.Done():
		s.cancel(ctx.Err())
		<-gone
	}
	return err
}
