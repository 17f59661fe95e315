package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/native"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/agent"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/bridge"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/supervisor"
	"github.com/dragoman-hub/dragoman/core"
	coreagent "github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/link"
)

// runSpeaking runs a command that speaks a dialect itself, as an agent of the hub.
func (a *agentFlags) runSpeaking(ctx context.Context, streams Streams, e config.Agent) error {
	at := a.to.address()
	joins, err := joinsBy(a.dialect, e.Dialect)
	if err == nil {
		at.SigningSecret, err = signingSecret(a.secretFile, joins)
	}
	if err == nil {
		err = checkSpeaking(e, joins, a.to)
	}
	if err != nil {
		return err
	}
	if err := checkEntry(e, streams.Err); err != nil {
		return err
	}
	log := newLog(streams.Err, "info", "auto")
	launcher := &supervisor.Launcher{Log: log, Guard: newGuard()}
	defer launcher.Guard.Close()
	ctx, stop := untilLeft(ctx, launcher.Guard, *a.stopTimeout, log)
	defer stop()
	s := speaking{entry: e, name: cmp.Or(a.name, e.Name), joins: joins, at: at, patience: *a.wait, log: log, begun: new(atomic.Bool), tries: new(atomic.Uint32)}
	opts := supervisor.Options{Launcher: launcher, HTTP: http.DefaultClient, Version: service.Version, Log: log}
	if e.Dialect == config.SpeaksNative {
		err = supervisor.RunNative(ctx, e, opts, supervisor.NativeHub{Connect: s.connect, Bridge: s.bridge})
	} else {
		err = supervisor.RunAlone(ctx, e, opts, s.serve)
	}
	if ctx.Err() != nil {
		err = nil
	}
	if err == nil && s.begun.Load() {
		log.Info("left", "agent", e.Name)
	}
	if errors.Is(err, client.ErrNotAccepted) {
		return client.NotHub(at.URL, at.Named, err.Error())
	}
	return err
}

// unknownSpeaks returns a usage error for what no command speaks.
func unknownSpeaks(speaks string, choices []string) error {
	if speaks == acp.Dialect {
		return usagef("--speaks acp: %s: write --speaks %s", config.NotACP, config.SpeaksEditor)
	}
	return usagef("--speaks %q: use %s", speaks, choice(speaks, choices))
}

// checkSpeaking returns a usage error for flags that do not fit a command that speaks a dialect.
func checkSpeaking(e config.Agent, joins string, to *hubFlags) error {
	switch {
	case e.Name == "":
		return usagef("--name is missing: name the agent, before the command")
	case e.MaxConcurrent < 1:
		return usagef("--concurrent %d: want at least 1", e.MaxConcurrent)
	}
	if err := to.checkGRPC(); err != nil {
		return err
	}
	return checkNoGRPC(joins, to)
}

// joinsBy returns the dialect by which a command joins that speaks one, or a usage error. A native command
// speaks with the hub itself.
func joinsBy(dialect, speaks string) (string, error) {
	usual := coven.Name
	if speaks == config.SpeaksNative {
		usual = native.Dialect
	}
	switch {
	case dialect == "", dialect == usual:
		return usual, nil
	case speaks == config.SpeaksNative:
		return "", usagef("--dialect %s: a command that speaks native joins by native: leave it out", dialect)
	}
	return dialect, checkJoins(dialect)
}

// checkEntry returns a usage error for an agent that cannot be started, and warns of what may
// keep it from working.
func checkEntry(e config.Agent, warnings io.Writer) error {
	return reportFindings(e.Check(), supervisor.CheckAgent(e), warnings)
}

// reportFindings returns a usage error for all that is wrong, and prints the warnings.
func reportFindings(err error, findings []supervisor.Finding, warnings io.Writer) error {
	wrong := []error{err}
	for _, f := range findings {
		text := "the command cannot be run: " + f.Text
		switch member, _, _ := strings.Cut(f.Member, "["); member {
		case "env":
			text = "--env: " + f.Text
		case "options":
			text = "--option: " + f.Text
		case "token_file":
			text = "--token-file: " + f.Text
		}
		if f.Warning {
			fmt.Fprintf(warnings, "dragoman: warning: %s\n", text)
		} else {
			wrong = append(wrong, errors.New(text))
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return wrongSettings(err)
	}
	return nil
}

// speaking is a command that speaks a dialect, and the hub that it joins.
type speaking struct {
	entry       config.Agent
	name, joins string
	at          client.Hub
	patience    time.Duration
	log         *slog.Logger
	begun       *atomic.Bool   // it has joined
	tries       *atomic.Uint32 // to connect; each is at the next hub
}

// joined logs that the hub has accepted the agent.
func (s speaking) joined(then func()) func() {
	return func() {
		s.log.Info("joined: ask it with 'dragoman ask "+quoted(s.entry.Name)+" ...'", "agent", s.entry.Name, "dialect", s.joins, "speaks", s.entry.Dialect)
		s.begun.Store(true)
		then()
	}
}

// serve joins the hub, and again whenever the connection is lost.
func (s speaking) serve(ctx context.Context, card core.Card, work func(context.Context, coreagent.Turn) error) error {
	card.Name = s.name
	return agent.Stay(ctx, s.log, s.patience, atEach(s.at, func(ctx context.Context, at client.Hub, joined func()) error {
		return service.Serves()[s.joins](ctx, at, card, work, s.joined(joined), slog.New(&agent.DelayedLog{Handler: s.log.Handler(), Begun: s.begun}))
	})...)
}

// connect connects with the hub: with patience the first time, and for as long as it takes once
// the agent has joined.
func (s speaking) connect(ctx context.Context) (conn link.Conn[[]byte, []byte], err error) {
	patience, absent, waits := s.patience, client.IsNoHub, config.FormatTime(s.patience)
	if s.begun.Load() {
		patience, waits = math.MaxInt64, "ever"
		absent = func(err error) bool {
			var refused *core.Fault
			return !errors.As(err, &refused) || refused.Code == core.CodeUnreachable
		}
	}
	retry := client.NewRetry(patience, absent, func(err error) {
		s.log.Info("waiting for a hub", "for", waits, "reason", err.Error())
	})
	hubs := s.at.Each()
	err = retry.Do(ctx, func() error {
		for tried := 1; ; tried++ {
			at := hubs[int(s.tries.Add(1)-1)%len(hubs)]
			if conn, err = s.dial(ctx, at); err == nil || ctx.Err() != nil || tried == len(hubs) || !absent(err) {
				return err
			}
		}
	})
	return conn, err
}

// dial connects with one hub. For a hub that takes nothing new no process is started again.
func (s speaking) dial(ctx context.Context, at client.Hub) (link.Conn[[]byte, []byte], error) {
	ctx, done := context.WithTimeoutCause(ctx, client.ResponseTimeout, client.ErrNotAccepted)
	defer done()
	var hub struct{ Draining string }
	if s.begun.Load() && at.Client().Get(ctx, "/v1/hub", &hub) == nil && hub.Draining != "" {
		return nil, core.NewFault(core.CodeUnreachable, "the hub at %s takes nothing new (%s)", at.URL, hub.Draining)
	}
	conn, err := client.DialWebSocket(ctx, at, bridge.NativePath, http.Header{"X-Agent-Id": {s.entry.Name}}, client.MaxNativeBytes)
	if err == nil {
		return conn, nil
	}
	if errors.Is(context.Cause(ctx), client.ErrNotAccepted) {
		err = client.ErrNotAccepted
	}
	return nil, err
}

// bridge connects a process of a native command with the hub.
func (s speaking) bridge(ctx context.Context, process, hub link.Conn[[]byte, []byte], card core.Card, joined func()) error {
	card.Name = s.name
	return bridge.RunNative(ctx, process, hub, card, sync.OnceFunc(s.joined(joined)), s.log)
}
