package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc/metadata"

	acpclient "github.com/dragoman-hub/dragoman/adapters/acp/client"
	acpwire "github.com/dragoman-hub/dragoman/adapters/acp/wire"
	covenclient "github.com/dragoman-hub/dragoman/adapters/coven/client"
	nativeclient "github.com/dragoman-hub/dragoman/adapters/native/client"
	parallaxclient "github.com/dragoman-hub/dragoman/adapters/parallax/client"
	parallaxwire "github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/link"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// The bounds of the program's own connections.
const (
	MaxParallaxBytes = parallaxwire.DefaultMaxMessageBytes
	MaxACPBytes      = acpwire.DefaultMaxEnvelopeBytes
	MaxNativeBytes   = ws.DefaultHardLimit // frames of the hub are as large as what they tell
	pingEvery        = 30 * time.Second
	pingTimeout      = 10 * time.Second
)

// LinkOptions are the timeouts of every WebSocket that the program opens.
var LinkOptions = link.Options{PingEvery: pingEvery, PingTimeout: pingTimeout}

// Hub is the address of a hub, and the credentials for it.
type Hub struct {
	URL   string // https://host:port, or http; of several hubs of a cluster with commas between
	Named string // the flag or variable that URL was given in, for errors
	GRPC  string // host:port; "" asks the hub
	Token string // to authenticate with; "" for none
	CA    string // PEM file with authorities that are trusted beside those of the system
	// Cert and Key are PEM files with a certificate to authenticate with, and its private key;
	// "" for none. In these paths ~ is the home directory.
	Cert, Key string
	// Insecure allows sending the token without TLS beyond this machine.
	Insecure bool
	// Wrong is why the hub is not known, which every use returns; nil if it is.
	Wrong error
	// SigningSecret is what a Parallax agent signs with; nil for none.
	SigningSecret []byte
}

// AskFunc asks an agent and returns its answer.
type AskFunc func(ctx context.Context, to, content string) (string, error)

// JoinFunc joins a hub as an agent and handles requests until the connection ends. joined is
// called when the hub has accepted the agent, with a function by which its handler can ask
// other agents: nil if agents of the dialect cannot.
type JoinFunc func(ctx context.Context, to Hub, card core.Card, handle core.Handler, joined func(AskFunc), log *slog.Logger) error

// ServeFunc joins a hub as an agent whose tasks work does, until the connection ends. joined is called when the
// hub has accepted the agent.
type ServeFunc func(ctx context.Context, to Hub, card core.Card, work func(context.Context, agent.Turn) error, joined func(), log *slog.Logger) error

// JoinCoven is the JoinFunc of Coven.
func JoinCoven(ctx context.Context, to Hub, card core.Card, handle core.Handler, joined func(AskFunc), _ *slog.Logger) error {
	return JoinCovenWith(ctx, to, card, handle, covenclient.WorkOptions{Joined: func(*wire.Welcome) { joined(AskByTool) }})
}

// JoinCovenWith joins by Coven with more options.
func JoinCovenWith(ctx context.Context, to Hub, card core.Card, handle core.Handler, opts covenclient.WorkOptions) error {
	return overCoven(ctx, to, func(ctx context.Context, conn covenConn) error {
		return covenclient.Work(ctx, conn, card, handle, opts)
	})
}

// ServeCoven is the ServeFunc of Coven.
func ServeCoven(ctx context.Context, to Hub, card core.Card, work func(context.Context, agent.Turn) error, joined func(), _ *slog.Logger) error {
	return overCoven(ctx, to, func(ctx context.Context, conn covenConn) error {
		return covenclient.Serve(ctx, conn, card, work, func(*wire.Welcome) { joined() })
	})
}

// covenConn is an agent's end of a Coven stream.
type covenConn = link.Conn[*wire.ServerMessage, *wire.AgentMessage]

// overCoven opens a stream to the hub and passes it to serve.
func overCoven(ctx context.Context, to Hub, serve func(context.Context, covenConn) error) error {
	at, err := to.grpcAddr(ctx)
	if err != nil {
		return err
	}
	secure, err := to.encryption(at, to.GRPC == "")
	if err != nil {
		return err
	}
	cc, err := grpcserver.Dial(ctx, at, grpcserver.DialOptions{TLS: secure})
	if err != nil {
		return unreachable(at, "--grpc-addr", err)
	}
	defer cc.Close()
	if to.Token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+to.Token)
	}
	conn, err := grpcserver.Open(ctx, wire.NewCovenControlClient(cc).AgentStream)
	if err != nil {
		return unreachable(at, "--grpc-addr", err)
	}
	err = serve(ctx, conn)
	var refused *core.Fault
	if errors.As(err, &refused) && refused.Code == core.CodeUnauthenticated {
		return to.refused(refused.Message)
	}
	return err
}

// grpcAddr returns the gRPC address of the hub; if it was not given, the hub is asked.
func (p Hub) grpcAddr(ctx context.Context) (string, error) {
	if p.GRPC != "" {
		return p.GRPC, nil
	}
	var hub struct{ Addresses rest.Addresses }
	err := p.Client().Get(ctx, "/v1/hub", &hub)
	var refused *core.Fault
	switch {
	case errors.As(err, &refused) && refused.Code == core.CodeUnauthenticated:
		return "", refused
	case err != nil && !IsNoHub(err):
		return "", errors.New(err.Error()) // a plain error is retried
	case err == nil && hub.Addresses.GRPC == "":
		err = fmt.Errorf("the hub at %s names no gRPC address that can be reached from here: start it with one, or name it with --grpc-addr", p.URL)
	}
	return hub.Addresses.GRPC, err
}

// JoinParallax is the JoinFunc of Parallax.
func JoinParallax(ctx context.Context, to Hub, card core.Card, handle core.Handler, joined func(AskFunc), log *slog.Logger) error {
	return overParallax(ctx, to, card, func(conn *ws.Conn) error {
		return parallaxclient.Work(ctx, conn, card, handle, parallaxclient.WorkOptions{Secret: to.SigningSecret, Registered: func(a *parallaxclient.Agent) { joined(asks(a.Ask)) }, Link: LinkOptions, Log: log})
	})
}

// ServeParallax is the ServeFunc of Parallax.
func ServeParallax(ctx context.Context, to Hub, card core.Card, work func(context.Context, agent.Turn) error, joined func(), log *slog.Logger) error {
	return overParallax(ctx, to, card, func(conn *ws.Conn) error {
		return parallaxclient.Serve(ctx, conn, card, work, parallaxclient.WorkOptions{Secret: to.SigningSecret, Registered: func(*parallaxclient.Agent) { joined() }, Link: LinkOptions, Log: log})
	})
}

func overParallax(ctx context.Context, to Hub, card core.Card, serve func(*ws.Conn) error) error {
	return overWebSocket(ctx, to, "/ws/agent", card, MaxParallaxBytes, serve)
}

// JoinACP is the JoinFunc of ACP.
func JoinACP(ctx context.Context, to Hub, card core.Card, handle core.Handler, joined func(AskFunc), log *slog.Logger) error {
	return JoinACPWith(ctx, to, card, handle, acpclient.WorkOptions{Joined: func() { joined(nil) }, Link: LinkOptions, Log: log})
}

// JoinACPWith joins by ACP with more options.
func JoinACPWith(ctx context.Context, to Hub, card core.Card, handle core.Handler, opts acpclient.WorkOptions) error {
	return overACP(ctx, to, card, func(conn *ws.Conn) error {
		return acpclient.Work(ctx, conn, card, handle, opts)
	})
}

// ServeACP is the ServeFunc of ACP.
func ServeACP(ctx context.Context, to Hub, card core.Card, work func(context.Context, agent.Turn) error, joined func(), log *slog.Logger) error {
	return overACP(ctx, to, card, func(conn *ws.Conn) error {
		return acpclient.Serve(ctx, conn, card, work, acpclient.WorkOptions{Joined: joined, Link: LinkOptions, Log: log})
	})
}

func overACP(ctx context.Context, to Hub, card core.Card, serve func(*ws.Conn) error) error {
	return overWebSocket(ctx, to, "/ws/acp", card, MaxACPBytes, serve)
}

// JoinNative is the JoinFunc of the native dialect.
func JoinNative(ctx context.Context, to Hub, card core.Card, handle core.Handler, joined func(AskFunc), log *slog.Logger) error {
	return JoinNativeWith(ctx, to, card, handle, nativeclient.WorkOptions{
		Joined: func(c *nativeclient.Client) { joined(asks(c.Ask)) }, Link: LinkOptions, Log: log,
	})
}

// JoinNativeWith joins by the native dialect with more options.
func JoinNativeWith(ctx context.Context, to Hub, card core.Card, handle core.Handler, opts nativeclient.WorkOptions) error {
	return overNative(ctx, to, card, func(conn *ws.Conn) error {
		return nativeclient.Work(ctx, conn, card, handle, opts)
	})
}

// ServeNative is the ServeFunc of the native dialect.
func ServeNative(ctx context.Context, to Hub, card core.Card, work func(context.Context, agent.Turn) error, joined func(), log *slog.Logger) error {
	return overNative(ctx, to, card, func(conn *ws.Conn) error {
		return nativeclient.Serve(ctx, conn, card, work, nativeclient.WorkOptions{Joined: func(*nativeclient.Client) { joined() }, Link: LinkOptions, Log: log})
	})
}

func overNative(ctx context.Context, to Hub, card core.Card, serve func(*ws.Conn) error) error {
	return overWebSocket(ctx, to, "/ws/native", card, MaxNativeBytes, serve)
}

// asks is the AskFunc of an agent that asks by a request of its dialect.
func asks[P any](ask func(context.Context, core.Request, P) (core.Answer, error)) AskFunc {
	return func(ctx context.Context, to, content string) (string, error) {
		addr, err := core.ParseAddress(to)
		if err != nil {
			return "", err
		}
		var none P
		answer, err := ask(ctx, core.Request{To: addr, Content: content}, none)
		return answer.Text, err
	}
}

// AskByTool is the AskFunc of a Coven agent: it calls a tool of the hub.
func AskByTool(ctx context.Context, to, content string) (string, error) {
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

// overWebSocket opens a WebSocket to the hub for an agent and passes it to serve.
func overWebSocket(ctx context.Context, to Hub, path string, card core.Card, limit int, serve func(*ws.Conn) error) error {
	conn, err := DialWebSocket(ctx, to, path, http.Header{"X-Agent-Id": {string(card.ID)}}, limit)
	if err != nil {
		return err
	}
	return serve(conn)
}

// DialWebSocket opens a WebSocket to a path of the hub; of several hubs to the first one that serves.
func DialWebSocket(ctx context.Context, to Hub, path string, header http.Header, limit int) (conn *ws.Conn, err error) {
	for _, one := range to.Each() {
		if conn, err = dialWebSocket(ctx, one, path, header, limit); err == nil || !IsNoHub(err) {
			return conn, err
		}
	}
	return nil, err
}

// dialWebSocket opens a WebSocket to a path of one hub.
func dialWebSocket(ctx context.Context, to Hub, path string, header http.Header, limit int) (*ws.Conn, error) {
	u, err := hubURL(to.URL, to.Named)
	if err != nil {
		return nil, err
	}
	if err := to.guardToken(u.Scheme == "https", u.Hostname()); err != nil {
		return nil, err
	}
	client, err := to.httpClient()
	if err != nil {
		return nil, err
	}
	if to.Token != "" {
		header = header.Clone()
		if header == nil {
			header = http.Header{}
		}
		header.Set("Authorization", "Bearer "+to.Token)
	}
	u.Scheme = map[string]string{"http": "ws", "https": "wss"}[u.Scheme]
	base, query, _ := strings.Cut(path, "?")
	u.Path, u.RawQuery = u.Path+base, query
	conn, err := ws.Dial(ctx, u.String(), ws.DialOptions{Limits: ws.Limits{ReadLimit: limit}, Header: header, Client: client})
	var answer *ws.HandshakeError
	switch {
	case errors.As(err, &answer) && answer.Status == http.StatusUnauthorized:
		return nil, to.refused(answer.Text)
	case errors.As(err, &answer) && answer.Status == http.StatusServiceUnavailable:
		if why := detailOf(answer.Text); why != "" {
			return nil, unavailable{error: fmt.Errorf("the hub at %s accepts no connections now: %s", to.URL, why)}
		}
		return nil, unavailable{error: Refusal{core.NewFault(core.CodeUnreachable, "the hub at %s accepts no connections now, because it is stopping: try again later (%s)", to.URL, answer)}}
	}
	if answer != nil && saysWhy(answer) {
		return nil, fmt.Errorf("the hub at %s refuses the connection: %s", to.URL, answer.Text)
	}
	if err != nil {
		return nil, unreachable(to.URL, to.Named, err)
	}
	return conn, nil
}

// detailOf returns what a problem document says; "" if the text is none.
func detailOf(text string) string {
	var p struct {
		Detail string `json:"detail"`
	}
	_ = json.Unmarshal([]byte(text), &p) // other text is no document
	return p.Detail
}

// saysWhy reports whether the answer is one of a hub that says what is wrong with a request: a line
// of plain text. Other servers answer with a page.
func saysWhy(a *ws.HandshakeError) bool {
	return (a.Status == http.StatusBadRequest || a.Status == http.StatusForbidden) && a.Text != "" && !strings.ContainsAny(a.Text, "\n<{")
}

// refused returns the error for a credential that the hub refuses for a reason, or a missing one.
func (p Hub) refused(why string) *core.Fault {
	switch {
	case p.Cert != "":
		return core.NewFault(core.CodeUnauthenticated, "the hub refuses the certificate of --cert: %s", why)
	case p.Token == "":
		return core.NewFault(core.CodeUnauthenticated, "the hub asks for a token: give it with --token or DRAGOMAN_TOKEN")
	}
	return core.NewFault(core.CodeUnauthenticated, "the hub does not know the token, or it has expired: give another with --token or DRAGOMAN_TOKEN")
}

// unreachable returns the error for an address without a hub.
func unreachable(at, flag string, err error) error {
	var op *net.OpError
	why := Reason(err)
	if err := explainTLS(at, flag, why); err != nil {
		return err
	}
	if errors.As(err, &op) || strings.HasPrefix(why, "dial ") {
		return unavailable{fmt.Errorf("no hub answers at %s: start one with 'dragoman serve', or name another with %s (%s)", at, flag, why), op != nil && op.Op == "dial"}
	}
	return NotHub(at, flag, why)
}

// NotHub returns the error for an address where something else answers.
func NotHub(at, flag, why string) error {
	return fmt.Errorf("what answers at %s is not a hub, or another listener of it: set %s to the address that the hub logs when it is ready (%s)", at, flag, why)
}

// Reason returns the cause of a failed connection without the prefixes of libraries, which
// repeat the address.
func Reason(err error) string {
	var op *net.OpError
	var answer *ws.HandshakeError
	var request *url.Error
	switch {
	case errors.As(err, &op):
		return op.Error()
	case errors.As(err, &answer):
		return answer.Error()
	case errors.As(err, &request):
		text, _, _ := strings.Cut(request.Err.Error(), ` "\x`) // bytes of another protocol
		return text
	}
	text := err.Error() // gRPC keeps only the text of an error
	if i := strings.LastIndex(text, `desc = "`); i >= 0 {
		text = strings.TrimSuffix(text[i+len(`desc = "`):], `"`)
	}
	return strings.TrimPrefix(text, "transport: Error while dialing: ")
}
