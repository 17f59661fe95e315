package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// hello initializes the connection (initialization) and authenticates where a method is
// configured.
func (c *connection) hello(ctx context.Context) (agent.Profile, error) {
	result, err := c.call(ctx, wire.MethodInitialize, wire.InitializeRequest{
		ProtocolVersion: wire.Version,
		ClientCapabilities: wire.ClientCapabilities{
			Elicitation: &wire.ElicitationKind{Form: &wire.Empty{}, URL: &wire.Empty{}},
			Session:     &wire.ClientSession{Notices: &wire.Empty{}, Compaction: &wire.Empty{}, ConfigOptions: &wire.ClientOptions{Boolean: &wire.Empty{}}},
		},
		ClientInfo: &wire.Implementation{Name: "dragoman", Title: "Dragoman", Version: cmp.Or(c.opts.Version, "0")},
	}, nil, ignore)
	if err != nil {
		return agent.Profile{}, c.explain("initialize", err)
	}
	hi, fault := wire.Read[wire.InitializeResponse](result)
	switch {
	case fault != nil:
		return agent.Profile{}, core.NewFault(core.CodeInvalid, "the agent's answer to initialize: %s", fault.Message)
	case hi.ProtocolVersion != wire.Version:
		return agent.Profile{}, core.NewFault(core.CodeUnsupported, "the agent speaks version %d of the editor's protocol, the hub version %d: use a version of the agent that speaks it", hi.ProtocolVersion, wire.Version)
	}
	c.hi = hi
	if err := c.authenticate(ctx); err != nil {
		return agent.Profile{}, err
	}
	can := features
	if string(result.Get("_meta", "steering", "supported").Raw()) == "true" {
		can |= core.FeatureInjection
	}
	return agent.Profile{Features: can, Metadata: c.metadata(result)}, nil
}

// metadata returns what the agent said of itself, for its card.
func (c *connection) metadata(hi strictjson.Value) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	for _, name := range []string{"agentInfo", "agentCapabilities"} {
		if v := hi.Get(name); !v.Absent() {
			all[name] = v.Clone()
		}
	}
	return all
}

// authenticate uses the configured method. Without one the agent is expected to have what it
// needs: many agents list methods although they are logged in.
func (c *connection) authenticate(ctx context.Context) error {
	method := c.opts.Auth
	if method == "" {
		return nil
	}
	if !slices.ContainsFunc(c.hi.AuthMethods, func(m wire.AuthMethod) bool { return m.ID == method }) {
		return core.NewFault(core.CodeUnauthenticated, "the agent has no method %q to authenticate: %s", method, c.methods())
	}
	if _, err := c.call(ctx, wire.MethodAuthenticate, wire.AuthenticateRequest{MethodID: method}, nil, ignore); err != nil {
		return c.explain("authenticate with "+method, err)
	}
	return nil
}

// methods says how the agent can be authenticated and what to do for it.
func (c *connection) methods() string {
	if len(c.hi.AuthMethods) == 0 {
		return "it names no methods: log in with the agent's own program, or set the variables that it reads its key from"
	}
	offered := make([]string, len(c.hi.AuthMethods))
	for i, m := range c.hi.AuthMethods {
		offered[i] = m.ID
		if m.Name != "" && m.Name != m.ID {
			offered[i] += " (" + m.Name + ")"
		}
		if m.Type == "terminal" {
			offered[i] += ", run in a terminal with the arguments " + strings.Join(m.Args, " ")
		}
	}
	return "it offers " + strings.Join(offered, "; ") + ". Log in once with the agent's own program as the user of the hub, or set the variables that it reads its key from, and name a method that needs no person as auth in its settings"
}

// explain returns the error of a call as one for operators and tasks.
func (c *connection) explain(act string, err error) error {
	var e *jsonrpc.Error
	if !errors.As(err, &e) {
		return err
	}
	code := core.CodeInternal
	switch e.Code {
	case wire.CodeAuthRequired:
		return core.NewFault(core.CodeUnauthenticated, "%s: the agent wants to be authenticated (%s%s): %s", act, e.Message, detail(e.Data), c.methods()).Because(err)
	case wire.CodeRequestCancelled:
		return core.NewFault(core.CodeCancelled, "%s: %s", act, e.Message)
	case jsonrpc.CodeInvalidParams, jsonrpc.CodeInvalidRequest:
		code = core.CodeInvalid
	case jsonrpc.CodeMethodNotFound:
		code = core.CodeUnsupported
	}
	f := core.NewFault(code, "%s: the agent answered: %s%s", act, e.Message, detail(e.Data))
	f.PeerCode = string(strictjson.Encode(e.Code))
	return f.Because(err)
}

// detail returns the data of an error in brackets, if it is short: agents say there what is wrong.
func detail(data json.RawMessage) string {
	const most = 500
	v := strictjson.ParseValid(data)
	if details, ok := v.Get("details").Text(); ok {
		data = json.RawMessage(details)
	}
	if len(data) == 0 || len(data) > most || v.Kind() == strictjson.Null {
		return ""
	}
	return " (" + string(data) + ")"
}
