package command

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/transports/stdio"
)

func serveCommand(io Streams) *cobra.Command {
	c := &cobra.Command{
		Use: "serve", Short: "Run a hub", Args: cobra.NoArgs,
		Long: `Run a hub until it is interrupted. The first interrupt shuts it down gracefully: peers
are notified and running tasks may finish. A second one stops it at once.

Settings come from a YAML file, the environment (DRAGOMAN_ and the name in capitals) and
the command line; 'dragoman check --all' explains each and shows its value. The file is that
of --config, else dragoman.yaml in this directory, else that in $XDG_CONFIG_HOME/dragoman
(~/.config/dragoman). 'dragoman add' writes agents into it. The log names the file, and
every command that the hub is about to run.`,
	}
	config.AddFlags(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		settings, err := config.Load(c.Flags(), os.Environ())
		if err != nil {
			return wrongSettings(err)
		}
		open := func() (*stdio.Conn, error) { return openStdio(io, stdio.Options{}) }
		return serve(c.Context(), settings, io, open, func() (config.Config, error) { return config.Load(c.Flags(), os.Environ()) })
	}
	return c
}

// serve runs a hub until a signal, or until its only peer has gone. open opens stdin and
// stdout, if the settings want it. On SIGHUP serve reads the settings again.
func serve(ctx context.Context, settings config.Config, io Streams, open func() (*stdio.Conn, error), read func() (config.Config, error)) error {
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)

	log := newLog(io.Err, settings.LogLevel, settings.LogFormat)
	if err := errors.Join(service.CheckListeners(settings), service.ReadFiles(settings)); err != nil {
		return wrongSettings(err)
	}
	service.LimitMemory(ctx, settings.Limits.Memory)
	at, gone := announce(settings, log)
	defer gone()
	commands := commandLog{log: log}
	commands.tell(settings)
	again := func() (config.Config, error) {
		c, err := read()
		if err == nil {
			commands.tell(c)
		}
		return c, err
	}
	for pause := time.Duration(0); ; {
		began := time.Now()
		err := serveLife(ctx, &settings, at, open, again, reload, signals, log)
		if !settings.Clustered() || !errors.Is(err, journal.ErrFenced) {
			return err
		}
		pause = pauseAfter(time.Since(began), pause)
		log.Warn("another hub has taken over this one, which starts again: its agents and clients reconnect, and its tasks have their ends there", "error", inLine(err), "pause", pause.String())
		select {
		case <-time.After(pause):
		case <-signals:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// pauseAfter returns how long a hub that was taken over waits before its next life, given how long it
// lived and how long it waited before: not at all, unless lives are short. Then two processes may have
// one name, and each take the other one over.
func pauseAfter(lived, before time.Duration) time.Duration {
	const short, least, most = 10 * time.Second, 250 * time.Millisecond, 10 * time.Second
	if lived >= short {
		return 0
	}
	return min(max(least, 2*before), most)
}

// serveLife runs a hub until a signal, until its only peer has gone, or until another hub has taken
// it over, and tells where it is reached. The listeners of the next life have the same ports.
func serveLife(ctx context.Context, settings *config.Config, tell func(url string), open func() (*stdio.Conn, error), read func() (config.Config, error), reload, signals <-chan os.Signal, log *slog.Logger) error {
	s, err := startHub(ctx, *settings, signals, log)
	if errors.Is(err, errStopped) {
		log.Info("the hub was stopped before it was ready")
		return nil
	} else if err != nil {
		return err
	}
	s.Addresses().Keep(settings)
	s.ReturnMemory()
	var gone <-chan struct{}
	if settings.Stdio {
		local, err := open()
		if err != nil {
			return errors.Join(err, stopHub(s, settings.StopTimeout, "stdin cannot be opened", signals, log))
		}
		gone = s.ServeStdio(local)
		if s.Addresses() != (service.Addresses{}) {
			gone = nil // others can still connect
		}
	}
	if settings.DataDir == "" && settings.Journal.NATSURL == "" {
		log.Info("tasks are kept in memory alone: --data-dir keeps them on disk")
	}
	log.Info("the hub is ready", readyLine(s.Addresses(), *settings)...)
	here := urlHere(s.Addresses(), *settings)
	tell(here)
	if next := nextStep(here, *settings); next != "" {
		log.Info(next)
	}

	reason, cause := awaitStop(ctx, s, settings.StopTimeout, read, gone, reload, signals, log)
	patience := settings.StopTimeout
	if errors.Is(cause, journal.ErrFenced) {
		patience = 0 // what its tasks do now counts no more
	}
	return errors.Join(cause, stopHub(s, patience, reason, signals, log))
}

// awaitStop waits until a hub is to stop, and returns why, with the error if there is one. Meanwhile it reloads
// the settings when it is told so.
func awaitStop(ctx context.Context, s *service.Service, stopTimeout time.Duration, read func() (config.Config, error), gone <-chan struct{}, reload, signals <-chan os.Signal, log *slog.Logger) (reason string, cause error) {
	for {
		select {
		case <-reload:
			again, err := read()
			if err == nil {
				err = s.Reload(again)
			}
			if err != nil {
				log.Error("reloading the settings failed: the previous ones stay in effect", "error", inLine(err))
			}
		case sig := <-signals:
			log.Info("stopping: interrupt again to stop at once", "signal", sig.String(), "stop_timeout", config.FormatTime(stopTimeout))
			return "shutdown", nil
		case cause := <-s.Failed():
			return "it cannot go on", cause
		case <-gone:
			return "the only peer has gone", nil
		case <-ctx.Done():
			return "shutdown", nil
		}
	}
}

// errStopped says that a hub was stopped by a signal while it started.
var errStopped = errors.New("stopped")

// startHub starts a hub, unless a signal comes before it is ready: it may wait for the others of its
// cluster.
func startHub(ctx context.Context, settings config.Config, signals <-chan os.Signal, log *slog.Logger) (s *service.Service, err error) {
	starting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	started, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-signals:
			stop(errStopped)
		case <-started:
		}
	}()
	s, err = service.Start(starting, settings, log, nil)
	close(started)
	<-watched
	if !errors.Is(context.Cause(starting), errStopped) {
		return s, err
	}
	if err == nil { // the signal came at the last moment
		if err = stopHub(s, settings.StopTimeout, "shutdown", signals, log); err != nil {
			return nil, err
		}
	}
	return nil, errStopped
}

// stopHub shuts a hub down gracefully. If another signal comes, running tasks and processes get no more time.
func stopHub(s *service.Service, patience time.Duration, reason string, signals <-chan os.Signal, log *slog.Logger) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Stop(ctx, reason) }()
	select {
	case err = <-done:
	case <-signals:
		cancel()
		s.Kill()
		err = <-done
	}
	if err != nil {
		log.Error("stopping", "error", err)
	} else {
		log.Info("the hub has stopped", "reason", reason)
	}
	return err
}

// readyLine returns the addresses and the journal of the hub, as far as they are set.
func readyLine(at service.Addresses, c config.Config) []any {
	var line []any
	for _, f := range [][2]string{
		{"grpc", at.GRPC}, {"http", at.HTTP}, {"pi", at.Pi}, {"pi_socket", at.PiSocket},
		{"data", c.DataDir}, {"nats", nats.Redacted(c.Journal.NATSURL)}, {"version", service.Version},
	} {
		if f[1] != "" {
			line = append(line, f[0], f[1])
		}
	}
	return line
}
