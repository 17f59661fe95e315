package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/metadata"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/core"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// place says where a hub is.
type place struct {
	http  string // http://host:port
	grpc  string // host:port
	token string // to authenticate with; "" for none
}

// asker asks an agent and returns what it answered.
type asker func(ctx context.Context, to, content string) (string, error)

// join connects an agent in its dialect and answers until the connection ends.
// joined is told when the hub has taken the agent in, with how the agent asks
// others from within its handler: nil where the dialect's agents do not.
type join func(ctx context.Context, to place, card core.Card, handle core.Handler, joined func(asker), log *slog.Logger) error

// joins are the dialects in which an agent can join.
func joins() map[string]join {
	return map[string]join{coven.Name: joinCoven, parallax.Dialect: joinParallax, acp.Dialect: joinACP}
}

func joinCoven(ctx context.Context, to place, card core.Card, handle core.Handler, joined func(asker), _ *slog.Logger) error {
	return joinCovenWith(ctx, to, card, handle, coven.WithJoined(func(*wire.Welcome) { joined(askByTool) }))
}

func joinCovenWith(ctx context.Context, to place, card core.Card, handle core.Handler, opts ...coven.WorkOption) error {
	cc, err := grpcserver.Dial(ctx, to.grpc, grpcserver.DialOptions{})
	if err != nil {
		return unreachable(to.grpc, "--grpc-addr", err)
	}
	defer cc.Close()
	if to.token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+to.token)
	}
	conn, err := grpcserver.Open(ctx, wire.NewCovenControlClient(cc).AgentStream, grpcserver.OpenOptions{})
	if err != nil {
		return unreachable(to.grpc, "--grpc-addr", err)
	}
	return coven.Work(ctx, conn, card, handle, opts...)
}

func joinParallax(ctx context.Context, to place, card core.Card, handle core.Handler, joined func(asker), log *slog.Logger) error {
	conn, err := dialWS(ctx, to, "/ws/agent", http.Header{"X-Agent-Id": {string(card.ID)}}, parallaxBytes)
	if err != nil {
		return err
	}
	return parallax.Work(ctx, conn, card, handle, parallax.WorkOptions{Registered: func(a *parallax.Agent) { joined(askByRequest(a)) }, Link: wsLink, Log: log})
}

func joinACP(ctx context.Context, to place, card core.Card, handle core.Handler, joined func(asker), log *slog.Logger) error {
	return joinACPWith(ctx, to, card, handle, acp.WorkOptions{Joined: func() { joined(nil) }, Link: wsLink, Log: log})
}

func joinACPWith(ctx context.Context, to place, card core.Card, handle core.Handler, opts acp.WorkOptions) error {
	conn, err := dialWS(ctx, to, "/ws/acp", http.Header{"X-Agent-Id": {string(card.ID)}}, acpBytes)
	if err != nil {
		return err
	}
	return acp.Work(ctx, conn, card, handle, opts)
}

// askByTool is how a Coven agent asks another: by a tool of the hub.
func askByTool(ctx context.Context, to, content string) (string, error) {
	input, err := json.Marshal(map[string]string{"to": to, "content": content})
	if err != nil {
		return "", err
	}
	out, err := coven.CallTool(ctx, "agent_ask", input)
	if err != nil {
		return "", err
	}
	var answer struct {
		Text string `json:"text"`
	}
	return answer.Text, json.Unmarshal(out, &answer)
}

// askByRequest is how a Parallax agent asks another: by the extension
// task_request.
func askByRequest(a *parallax.Agent) asker {
	return func(ctx context.Context, to, content string) (string, error) {
		addr, err := core.ParseAddress(to)
		if err != nil {
			return "", err
		}
		answer, err := a.Ask(ctx, core.Request{To: addr, Content: content}, nil)
		return answer.Text, err
	}
}

// dialWS opens a WebSocket to a path of the hub.
func dialWS(ctx context.Context, to place, path string, header http.Header, limit int) (*ws.Conn, error) {
	u, err := hubURL(to.http)
	if err != nil {
		return nil, err
	}
	if to.token != "" {
		header = header.Clone()
		if header == nil {
			header = http.Header{}
		}
		header.Set("Authorization", "Bearer "+to.token)
	}
	u.Scheme = map[string]string{"http": "ws", "https": "wss"}[u.Scheme]
	base, query, _ := strings.Cut(path, "?")
	u.Path, u.RawQuery = u.Path+base, query
	conn, err := ws.Dial(ctx, u.String(), ws.DialOptions{Limits: ws.Limits{ReadLimit: limit}, Header: header})
	if err != nil {
		return nil, unreachable(to.http, "--hub", err)
	}
	return conn, nil
}

// unreachable says what to do when no hub answers.
func unreachable(at, flag string, err error) error {
	var op *net.OpError
	why := plainly(err)
	if errors.As(err, &op) || strings.HasPrefix(why, "dial ") {
		return fmt.Errorf("no hub answers at %s: start one with 'dragoman serve', or name another with %s (%s)", at, flag, why)
	}
	return elsewhere(at, flag, why)
}

// elsewhere says what to do when something else than a hub answers.
func elsewhere(at, flag, why string) error {
	return fmt.Errorf("what answers at %s is no hub, or another door of it: name the address that the hub says when it is ready with %s (%s)", at, flag, why)
}

// plainly is what an error of connecting comes to: what libraries put around it
// repeats the address, each in its own way.
func plainly(err error) string {
	var op *net.OpError
	var answer *ws.HandshakeError
	var request *url.Error
	switch {
	case errors.As(err, &op):
		return op.Error()
	case errors.As(err, &answer):
		return answer.Error()
	case errors.As(err, &request):
		said, _, _ := strings.Cut(request.Err.Error(), ` "\x`) // bytes of another protocol
		return said
	}
	said := err.Error() // of gRPC, which keeps the text alone
	if i := strings.LastIndex(said, `desc = "`); i >= 0 {
		said = strings.TrimSuffix(said[i+len(`desc = "`):], `"`)
	}
	return strings.TrimPrefix(said, "transport: Error while dialing: ")
}

func agentCommand(io streams) *cobra.Command {
	var dialect, name, id, model string
	var able, domains []string
	var concurrent int
	c := &cobra.Command{
		Use:   "agent --dialect D --name N [flags] -- COMMAND [ARG...]",
		Short: "Make an agent of any command",
		Long: `Join the hub as an agent that answers every request by running a command: the
request on its stdin, its stdout streamed back as text, a non-zero exit as a
failure with the end of its stderr.

  dragoman agent --dialect parallax --name shout -- tr a-z A-Z
  dragoman agent --dialect coven --name poet --capability verse -- ./poet.sh

What a request has beside its text (data, attachments, history) stands as JSON in
the file that the variable DRAGOMAN_REQUEST names. A notice comes to Coven and
Parallax agents as a request of its topic and data.`,
		Args: cobra.MinimumNArgs(1),
	}
	f := c.Flags()
	f.StringVar(&dialect, "dialect", "", "`dialect` to join in: coven, parallax or acp")
	f.StringVar(&name, "name", "", "`name` of the agent")
	f.StringVar(&id, "id", "", "`id` of the agent; default: its name")
	f.StringVar(&model, "model", "", "`model` that it tells")
	f.StringSliceVar(&able, "capability", nil, "`capability` that it declares; may be repeated")
	f.StringSliceVar(&domains, "domain", nil, "`domain` that it declares; may be repeated")
	f.IntVar(&concurrent, "concurrent", 1, "how many requests it answers at once")
	to := hubFlags(f)
	f.StringVar(&to.grpc, "grpc-addr", "127.0.0.1:50051", "gRPC `address` of the hub, for --dialect coven")
	c.RunE = func(c *cobra.Command, args []string) error {
		connect, ok := joins()[dialect]
		switch {
		case !ok:
			return &exit{exitUsage, fmt.Errorf("--dialect %q: use coven, parallax or acp", dialect)}
		case name == "" && id == "":
			return &exit{exitUsage, errors.New("--name is missing: name the agent")}
		case concurrent < 1:
			return &exit{exitUsage, fmt.Errorf("--concurrent %d: want at least 1", concurrent)}
		}
		if _, err := exec.LookPath(args[0]); err != nil {
			return &exit{exitUsage, fmt.Errorf("the command cannot be run: %w", err)}
		}
		if id == "" {
			id = name
		}
		card := core.Card{
			ID: core.AgentID(id), Name: name, Dialect: dialect, Capabilities: able, Domains: domains, Model: model, MaxConcurrent: concurrent,
			Features: core.FeatureStreaming | core.FeatureCancellation,
		}
		if err := core.CheckAgentID(card.ID); err != nil {
			return &exit{exitUsage, errors.New(core.AsFault(err).Message)}
		}
		ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		log := newLog(io.err, "info", "auto")
		return stay(ctx, log, func(ctx context.Context, joined func()) error {
			return connect(ctx, to.place(), card, commandHandler(args, io.err), func(asker) {
				log.Info("joined: ask it with 'dragoman ask "+quoted(id)+" ...'", "agent", id, "dialect", dialect)
				joined()
			}, log)
		})
	}
	return c
}

// quoted is a word as a shell takes it.
func quoted(word string) string {
	if strings.ContainsFunc(word, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.:/@", r)
	}) {
		return strconv.Quote(word)
	}
	return word
}

// inTime lets connect join within the patience that there is for what should be
// quick: at another door of the hub, or of another server, nobody may ever answer.
func inTime(ctx context.Context, connect func(ctx context.Context, joined func()) error, joined func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := fmt.Errorf("nobody took the agent in within %s: are --hub and --grpc-addr the addresses of a hub?", patience)
	timer := time.AfterFunc(patience, func() { cancel(silent) })
	defer timer.Stop()
	err := connect(ctx, func() {
		timer.Stop()
		joined()
	})
	if errors.Is(context.Cause(ctx), silent) {
		return silent
	}
	return err
}

// The pace at which an agent comes back after its connection was lost.
const (
	backoffLeast = time.Second
	backoffMost  = 30 * time.Second
)

// stay joins, and joins again when the connection is lost, at a growing pace. Only a
// connection that held begins the pace anew: a hub that takes the agent in and drops
// it at once is not run down. It returns an error when it never got in, or when the
// hub turned it away.
func stay(ctx context.Context, log *slog.Logger, connect func(ctx context.Context, joined func()) error) error {
	in, wait := false, backoffLeast
	for {
		var since time.Time
		err := inTime(ctx, connect, func() { in, since = true, time.Now() })
		var turned *core.Fault
		switch {
		case ctx.Err() != nil:
			return nil
		case in && errors.As(err, &turned) && turned.Code == core.CodeConflict:
			// The hub may not know yet that the connection before is lost.
		case errors.As(err, &turned):
			return errors.New(turned.Message)
		case !in && err != nil && !errors.Is(err, io.EOF):
			return err
		}
		if !since.IsZero() && time.Since(since) >= backoffMost {
			wait = backoffLeast
		}
		pause := wait/2 + rand.N(wait/2)
		reason := "the hub ended it in good order"
		if err != nil {
			reason = err.Error()
		}
		log.Warn("the connection has ended: joining again", "reason", reason, "in", pause.String())
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
		wait = min(2*wait, backoffMost)
	}
}
