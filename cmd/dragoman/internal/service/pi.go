package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/transports/stdio"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// piState is shared by all pi-server connections.
type piState struct {
	server *pi.Server
	// snapshots and lifecycle are the defaults of clients.
	snapshots render.Snapshots
	lifecycle pi.Lifecycle
}

// openPi creates the server and recovers its journal.
func (s *Service) openPi(ctx context.Context) (err error) {
	c := s.config
	s.pi.server = pi.NewServer(s.hub, piOptions(c, pi.Options{
		Commands: command.Options{QueuePrompts: true, Journal: s.piJournal, JournalPath: journalPath(c)},
		Frames:   func() *frame.Ring { return s.frames.Connect(pi.Name, nil) },
		Version:  Version, DrainTimeout: c.StopTimeout, Link: s.webSocketLink(), Log: s.log, Reaper: SelfCommand(ReapCommand), Dialects: agentDialects(),
	}))
	if s.pi.snapshots, err = render.ParseSnapshots(c.Pi.Snapshots); err != nil {
		return fmt.Errorf("pi.snapshots: %w", err)
	}
	if s.pi.lifecycle, err = pi.ParseLifecycle(c.Pi.Lifecycle); err != nil {
		return fmt.Errorf("pi.lifecycle: %w", err)
	}
	return s.pi.server.Recover(ctx)
}

// mountPi serves pi-server over WebSocket, at any path of its own address, and over the
// Unix socket.
func (s *Service) mountPi(l *listeners) {
	if l.http != nil {
		l.http.Get("/ws/pi", s.servePi)
	}
	if l.pi != nil {
		l.pi.Handle("/*", http.HandlerFunc(s.servePi))
	}
	if s.socket != nil {
		s.run("Unix socket", s.acceptPi)
	}
}

func (s *Service) drainPi(ctx context.Context) {
	if s.pi.server != nil {
		s.pi.server.Drain(ctx)
	}
}

func (s *Service) closePi() {
	if s.pi.server != nil {
		s.pi.server.Close()
	}
}

// ServeStdio serves pi-server to the peer on local until it disconnects or the service stops.
// Then the channel is closed.
func (s *Service) ServeStdio(local *stdio.Conn) (gone <-chan struct{}) {
	ended := make(chan struct{})
	s.conns.Go(func() {
		defer close(ended)
		peer := core.Principal{ID: "stdio", Operator: true}
		s.came(peer, pi.Name, "stdio", nil)
		reason := s.pi.server.Serve(s.ctx, local, pi.ConnOptions{
			Principal: peer, Transport: pi.Stdio, Snapshots: s.pi.snapshots, Lifecycle: s.pi.lifecycle, Frames: s.frames.Connect(pi.Name, nil),
		})
		s.log.Info("the peer on stdin and stdout has gone", "reason", reason.Error())
	})
	return ended
}

// acceptPi serves pi-server, one JSON object per line, to clients of the Unix socket.
func (s *Service) acceptPi() error {
	for {
		conn, err := s.socket.Accept()
		switch {
		case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
			s.refusals.refused("a connection could not be accepted: "+client.Reason(err), &net.UnixAddr{Name: s.socket.Path(), Net: "unix"})
			select {
			case <-time.After(100 * time.Millisecond): // as net/http does
			case <-s.ctx.Done():
			}
			continue
		case err != nil:
			return err
		}
		principal, err := s.admitUser(conn)
		s.hold(func() {
			if err != nil {
				pi.Refuse(s.ctx, conn, core.AsFault(err).Message)
				return
			}
			s.pi.server.Serve(s.ctx, conn, pi.ConnOptions{Principal: principal, Transport: pi.Stdio, Snapshots: s.pi.snapshots, Lifecycle: s.pi.lifecycle, Frames: s.frames.Connect(pi.Name, nil)})
		})
	}
}

func (s *Service) servePi(w http.ResponseWriter, r *http.Request) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		plainText(w, http.StatusUpgradeRequired, "Upgrade Required")
		return
	}
	query := r.URL.Query()
	snapshots, err := render.ParseSnapshots(cmp.Or(query.Get("snapshots"), s.config.Pi.Snapshots))
	lifecycle, err2 := pi.ParseLifecycle(cmp.Or(query.Get("lifecycle"), s.config.Pi.Lifecycle))
	if err = cmp.Or(err, err2); err != nil {
		plainText(w, http.StatusBadRequest, core.AsFault(err).Message+"\n")
		return
	}
	conn := s.upgrade(w, r, ws.AcceptOptions{
		Limits:          ws.Limits{ReadLimit: s.config.Pi.MessageBytes, Oversize: ws.Reject, AcceptBinary: true},
		EchoSubprotocol: true,
	})
	if conn == nil {
		return
	}
	principal := principalOf(r.Context(), core.Principal{Operator: true}) // all users of an open hub are operators
	trace := core.TraceOf(r.Header)
	s.hold(func() {
		s.pi.server.Serve(s.ctx, conn, pi.ConnOptions{
			Transport: pi.WebSocket, Snapshots: snapshots, Lifecycle: lifecycle, Principal: principal, Frames: s.frames.Connect(pi.Name, nil), Trace: trace,
		})
	})
}

// piOptions adds the settings of pi-server to its options.
func piOptions(all config.Config, o pi.Options) pi.Options {
	c := all.Pi
	o.MaxMessageBytes, o.MaxSessions, o.MaxConnections = c.MessageBytes, c.Sessions, c.Connections
	o.SessionLifetime, o.DropTasks = orNever(c.SessionLifetime), !c.KeepTasks
	o.Retries, o.Bash, o.CompactAt = orNever(c.Retries), c.Bash, orNever(c.CompactAt)
	o.SessionDir, o.SessionRoots, o.ExportDirs = all.SessionDirectory(), c.SessionRootDirectories(), c.ExportDirectories()
	r := c.Rates
	o.Commands.PromptTimeout = c.PromptTimeout
	o.Commands.Rates = command.Rates{All: orNever(r.All), Client: orNever(r.Client), Session: orNever(r.Session), Server: orNever(r.Server), Answers: orNever(r.Answers)}
	o.Breakers.Agent.Failures = orNever(c.AgentFailures)
	return o
}

// journalPath returns the place of the journal: the data directory or the address of a NATS
// server; "" in memory.
func journalPath(c config.Config) string {
	if c.Journal.NATSURL != "" {
		return nats.Redacted(c.Journal.NATSURL)
	}
	if c.DataDir == "" {
		return ""
	}
	path, err := filepath.Abs(c.DataDir)
	if err != nil {
		return c.DataDir
	}
	return path
}

// ReapCommand is the hidden command that runs the programs of pi clients: this program again,
// as the parent that ends everything they have started.
const ReapCommand = "reap"

// SelfCommand returns the command line of a command of this program, or nil if its path is
// unknown.
func SelfCommand(command string) []string {
	// On Linux this works even if the file of the program was replaced or removed.
	const running = "/proc/self/exe"
	if _, err := os.Stat(running); err == nil {
		return []string{running, command}
	}
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{self, command}
}
