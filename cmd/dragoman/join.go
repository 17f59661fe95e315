package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"google.golang.org/grpc/metadata"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	covenclient "github.com/dragoman-hub/dragoman/adapters/coven/client"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/core"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// place says where a hub is.
type place struct {
	http  string // http://host:port
	named string // the flag or variable that http stands in
	grpc  string // host:port; "" is as the hub says
	token string // to authenticate with; "" for none
	// secret is what a Parallax agent signs with; nil for none.
	secret []byte
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
	return joinCovenWith(ctx, to, card, handle, covenclient.WithJoined(func(*wire.Welcome) { joined(askByTool) }))
}

func joinCovenWith(ctx context.Context, to place, card core.Card, handle core.Handler, opts ...covenclient.WorkOption) error {
	at, err := to.grpcAddr(ctx)
	if err != nil {
		return err
	}
	cc, err := grpcserver.Dial(ctx, at, grpcserver.DialOptions{})
	if err != nil {
		return unreachable(at, "--grpc-addr", err)
	}
	defer cc.Close()
	if to.token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+to.token)
	}
	conn, err := grpcserver.Open(ctx, wire.NewCovenControlClient(cc).AgentStream, grpcserver.OpenOptions{})
	if err != nil {
		return unreachable(at, "--grpc-addr", err)
	}
	err = covenclient.Work(ctx, conn, card, handle, opts...)
	var turned *core.Fault
	if errors.As(err, &turned) && turned.Code == core.CodeUnauthenticated {
		return wantsToken(to.token)
	}
	return err
}

// grpcAddr is where the hub serves gRPC, for who was told nothing else: the hub names it.
func (p place) grpcAddr(ctx context.Context) (string, error) {
	if p.grpc != "" {
		return p.grpc, nil
	}
	var hub struct{ Addresses rest.Addresses }
	err := p.client().get(ctx, "/v1/hub", &hub)
	var turned *core.Fault
	switch {
	case errors.As(err, &turned) && turned.Code == core.CodeUnauthenticated:
		return "", turned
	case err != nil && !noHub(err):
		return "", errors.New(err.Error()) // no other refusal is for good
	case err == nil && hub.Addresses.GRPC == "":
		err = fmt.Errorf("the hub at %s names no gRPC address that can be reached from here: start it with one, or name it with --grpc-addr", p.http)
	}
	return hub.Addresses.GRPC, err
}

func joinParallax(ctx context.Context, to place, card core.Card, handle core.Handler, joined func(asker), log *slog.Logger) error {
	conn, err := dialWS(ctx, to, "/ws/agent", http.Header{"X-Agent-Id": {string(card.ID)}}, parallaxBytes)
	if err != nil {
		return err
	}
	return parallax.Work(ctx, conn, card, handle, parallax.WorkOptions{Secret: to.secret, Registered: func(a *parallax.Agent) { joined(askByRequest(a)) }, Link: wsLink, Log: log})
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
	out, err := covenclient.CallTool(ctx, "agent_ask", input)
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
	u, err := hubURL(to.http, to.named)
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
	var answer *ws.HandshakeError
	switch {
	case errors.As(err, &answer) && answer.Status == http.StatusUnauthorized:
		return nil, wantsToken(to.token)
	case errors.As(err, &answer) && answer.Status == http.StatusServiceUnavailable:
		return nil, absence{fmt.Errorf("the hub at %s takes nobody in now, since it is stopping or full: try again later (%w)", to.http, answer)}
	}
	if err != nil {
		return nil, unreachable(to.http, to.named, err)
	}
	return conn, nil
}

// wantsToken says what to do when the hub does not take the token that it was shown;
// "" is none.
func wantsToken(shown string) *core.Fault {
	if shown == "" {
		return core.NewFault(core.CodeUnauthenticated, "the hub asks for a token: give it with --token or DRAGOMAN_TOKEN")
	}
	return core.NewFault(core.CodeUnauthenticated, "the hub does not know the token, or it has expired: give another with --token or DRAGOMAN_TOKEN")
}

// unreachable says what to do when no hub answers.
func unreachable(at, flag string, err error) error {
	var op *net.OpError
	why := plainly(err)
	if errors.As(err, &op) || strings.HasPrefix(why, "dial ") {
		return absence{fmt.Errorf("no hub answers at %s: start one with 'dragoman serve', or name another with %s (%s)", at, flag, why)}
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

// quoted is a word as a shell takes it.
func quoted(word string) string {
	if strings.ContainsFunc(word, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.:/@", r)
	}) {
		return strconv.Quote(word)
	}
	return word
}
