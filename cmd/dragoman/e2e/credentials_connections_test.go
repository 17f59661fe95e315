package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	acpclient "github.com/dragoman-hub/dragoman/adapters/acp/client"
	covenclient "github.com/dragoman-hub/dragoman/adapters/coven/client"
	"github.com/dragoman-hub/dragoman/adapters/editor"
	nativeclient "github.com/dragoman-hub/dragoman/adapters/native/client"
	parallaxclient "github.com/dragoman-hub/dragoman/adapters/parallax/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/proto/parallax/gateway"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
	"github.com/dragoman-hub/dragoman/transports/stdio"
)

func covenAgentEnters(t *testing.T, h *credentialHub, bring func() brought, who string) (string, error) {
	ctx, cc, err := h.call(t, bring)
	if err != nil {
		return "", err
	}
	conn, err := grpcserver.Open(ctx, wire.NewCovenControlClient(cc).AgentStream)
	if err != nil {
		return "", err
	}
	return h.agent(t, who, func(ctx context.Context, card core.Card, joined func()) error {
		return covenclient.Work(ctx, conn, card, shout, covenclient.WorkOptions{Joined: func(*wire.Welcome) { joined() }})
	})
}

func covenClientEnters(t *testing.T, h *credentialHub, bring func() brought, _ string) (string, error) {
	ctx, cc, err := h.call(t, bring)
	if err != nil {
		return "", err
	}
	me, err := wire.NewClientServiceClient(cc).GetMe(ctx, nil)
	return me.GetPrincipalId() + ",", err
}

func parallaxEnters(t *testing.T, h *credentialHub, bring func() brought, who string) (string, error) {
	conn, err := h.webSocket(t, bring, h.at()+"/ws/agent", who)
	if err != nil {
		return "", err
	}
	return h.agent(t, who, func(ctx context.Context, card core.Card, joined func()) error {
		return parallaxclient.Work(ctx, conn, card, shout, parallaxclient.WorkOptions{Registered: func(*parallaxclient.Agent) { joined() }})
	})
}

func gatewayEnters(t *testing.T, h *credentialHub, bring func() brought, who string) (string, error) {
	calling, cc, err := h.call(t, bring)
	if err != nil {
		return "", err
	}
	return h.agent(t, who, func(ctx context.Context, card core.Card, joined func()) error {
		calling, cancel := context.WithCancel(calling)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		stream, err := gateway.NewAgentGatewayClient(cc).Connect(calling)
		if err != nil {
			return err
		}
		_ = stream.Send(&gateway.AgentToControlPlane{RequestId: "hello", Payload: &gateway.AgentToControlPlane_Hello{ // Recv has the error
			Hello: &gateway.AgentHello{AgentId: string(card.ID), AgentName: "Edge"},
		}})
		for {
			m, err := stream.Recv()
			if err != nil {
				return err
			}
			if m.GetAck().GetAccepted() {
				joined()
			}
		}
	})
}

func acpEnters(t *testing.T, h *credentialHub, bring func() brought, who string) (string, error) {
	conn, err := h.webSocket(t, bring, h.at()+"/ws/acp", who)
	if err != nil {
		return "", err
	}
	return h.agent(t, who, func(ctx context.Context, card core.Card, joined func()) error {
		return acpclient.Work(ctx, conn, card, shout, acpclient.WorkOptions{Joined: joined})
	})
}

func nativeAgentEnters(t *testing.T, h *credentialHub, bring func() brought, who string) (string, error) {
	conn, err := h.webSocket(t, bring, h.at()+"/ws/native", who)
	if err != nil {
		return "", err
	}
	return h.agent(t, who, func(ctx context.Context, card core.Card, joined func()) error {
		return nativeclient.Work(ctx, conn, card, shout, nativeclient.WorkOptions{Joined: func(*nativeclient.Client) { joined() }})
	})
}

func nativeClientEnters(t *testing.T, h *credentialHub, bring func() brought, _ string) (string, error) {
	conn, err := h.webSocket(t, bring, h.at()+"/ws/native", "")
	if err != nil {
		return "", err
	}
	c := nativeclient.New(t.Context(), conn, nativeclient.Options{})
	defer c.Close()
	answer, err := c.Ask(t.Context(), core.Request{To: core.ToAgent("who"), Content: h.question()}, nil)
	return answer.Text, err
}

func piEnters(at func(*credentialHub) string) func(*testing.T, *credentialHub, func() brought, string) (string, error) {
	return func(t *testing.T, h *credentialHub, bring func() brought, _ string) (string, error) {
		conn, err := h.webSocket(t, bring, at(h), "")
		if err != nil {
			return "", err
		}
		return h.overPi(t, frames{conn, nil}), nil
	}
}

func piUnixEnters(t *testing.T, h *credentialHub, _ func() brought, _ string) (string, error) {
	return h.overPi(t, openUnix(t, h.config.PiSocket)), nil
}

// overPi asks who is asking.
func (h *credentialHub) overPi(t *testing.T, f frames) string {
	c := connectPiClient(t, f)
	defer c.leave()
	return c.begin(query{to: "who", content: h.question()}).wait(t).Text
}

// bridge runs the program as a bridge. An end before it is connected is an error with what it printed.
func (h *credentialHub) bridge(t *testing.T, token string, args ...string) (frames, *output) {
	cmd := program(t, append(args, "--hub", h.at(), "--ca", h.config.TLS.Cert)...)
	cmd.Env = append(cmd.Env, "DRAGOMAN_TOKEN="+token)
	printed := &output{}
	cmd.Stderr = printed
	child, err := stdio.Command(context.Background(), cmd, stdio.ChildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Close(link.Reason{Cause: link.Normal}) })
	return frames{child, func() { _ = cmd.Process.Kill() }}, printed
}

func piBridgeEnters(t *testing.T, h *credentialHub, bring func() brought, _ string) (string, error) {
	f, printed := h.bridge(t, bring().token, "stdio", "--dialect", "pi")
	first, err := f.Receive(t.Context())
	if err != nil {
		return "", errors.New(printed.String())
	}
	return h.overPi(t, frames{&replayed{f.Conn, first}, f.cut}), nil
}

// replayed is a connection whose first message has been read.
type replayed struct {
	link.Conn[[]byte, []byte]
	first []byte
}

// Receive implements link.Conn.
func (r *replayed) Receive(ctx context.Context) ([]byte, error) {
	if first := r.first; first != nil {
		r.first = nil
		return first, nil
	}
	return r.Conn.Receive(ctx)
}

func editorEnters(t *testing.T, h *credentialHub, bring func() brought, _ string) (string, error) {
	conn, err := h.webSocket(t, bring, h.at()+editor.Path+"?agent=who", "")
	if err != nil {
		return "", err
	}
	return h.overEditor(t, frames{conn, nil})
}

func editorBridgeEnters(t *testing.T, h *credentialHub, bring func() brought, _ string) (string, error) {
	f, _ := h.bridge(t, bring().token, "editor", "--agent", "who")
	return h.overEditor(t, f)
}

// overEditor asks who is asking. A refusal is an error of initialize.
func (h *credentialHub) overEditor(t *testing.T, f frames) (string, error) {
	c := &editorConn{frames: f, answers: map[string]func(editorMessage){}, sessions: map[string]*exchange{}, read: make(chan struct{})}
	go c.hear()
	defer func() {
		_ = f.Close(link.Reason{Cause: link.Normal})
		<-c.read
	}()
	first := make(chan editorMessage, 1)
	if err := c.call("initialize", `{"protocolVersion":1,"clientCapabilities":{}}`, func(m editorMessage) { first <- m }); err != nil {
		return "", err
	}
	if m := <-first; m.Error != nil {
		return "", fmt.Errorf("%d: %s", m.Error.Code, m.Error.Message)
	}
	return c.prompt(t, h.question()).wait(t).Text, nil
}
