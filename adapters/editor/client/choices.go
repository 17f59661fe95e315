package client

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Choice is a setting of the sessions of an agent: its mode, its model, or another option that it
// offers (session config options, session modes).
type Choice struct{ Name, Value string }

// choose makes the choices of the settings in a session, of which the agent has answered what it
// offers. A task must not run in another mode than it should: an error fails it. It is a Fault that
// names what the agent offers.
func (c *connection) choose(ctx context.Context, session string, answer strictjson.Value) error {
	if len(c.opts.Choices) == 0 {
		return nil
	}
	o := &offer{conn: c, session: session}
	if err := answer.Decode(&o.Offer); err != nil && !answer.Absent() {
		return core.NewFault(core.CodeInvalid, "what the agent offers to choose from cannot be read: %s", err)
	}
	for _, choice := range c.opts.Choices {
		if err := o.choose(ctx, choice); err != nil {
			return err
		}
	}
	return nil
}

// offer is what a session can be set to.
type offer struct {
	wire.Offer
	conn    *connection
	session string
}

// choose makes one choice, unless that is how the session is. An agent that has not said what it
// offers is asked.
func (o *offer) choose(ctx context.Context, c Choice) error {
	at := slices.IndexFunc(o.ConfigOptions, func(option wire.ConfigOption) bool { return option.ID == c.Name })
	silent := o.Modes == nil && o.ConfigOptions == nil
	switch {
	case at >= 0:
		option := o.ConfigOptions[at]
		params := wire.SetConfigOption{SessionID: o.session, ConfigID: c.Name, Value: option.ValueOf(c.Value)}
		if string(params.Value) == string(option.CurrentValue) {
			return nil
		}
		if option.Type == wire.OptionBoolean {
			params.Type = wire.OptionBoolean
		}
		return o.set(ctx, c, wire.MethodSessionSetConfigOption, params, option.Values())
	case c.Name == wire.OptionMode && o.Modes != nil:
		if o.Modes.CurrentModeID == c.Value {
			return nil
		}
		return o.set(ctx, c, wire.MethodSessionSetMode, wire.SetMode{SessionID: o.session, ModeID: c.Value}, o.Modes.IDs())
	case c.Name == wire.OptionMode && silent:
		return o.set(ctx, c, wire.MethodSessionSetMode, wire.SetMode{SessionID: o.session, ModeID: c.Value}, nil)
	case c.Name == wire.OptionModel && len(o.Models) > 0:
		return o.set(ctx, c, wire.MethodSetModel, wire.SetModel{SessionID: o.session, ModelID: c.Value}, nil)
	case silent:
		return o.set(ctx, c, wire.MethodSessionSetConfigOption, wire.SetConfigOption{SessionID: o.session, ConfigID: c.Name, Value: strictjson.Encode(c.Value)}, nil)
	}
	return core.NewFault(core.CodeInvalid, "the agent has no option %q: it has %s; change options in its settings", c.Name, o.names())
}

// set asks the agent for a choice. It may not have the values of its list alone, such as models.
func (o *offer) set(ctx context.Context, c Choice, method string, params any, values []string) error {
	offers := ""
	if len(values) > 0 {
		offers = "; it offers " + strings.Join(values, ", ")
	}
	if c.Name == wire.OptionMode && len(values) > 0 && !slices.Contains(values, c.Value) {
		return core.NewFault(core.CodeInvalid, "the agent has no mode %q%s; change options in its settings", c.Value, offers)
	}
	result, err := o.conn.call(ctx, method, params, nil, ignore)
	var refused *jsonrpc.Error
	switch {
	case errors.As(err, &refused):
		return core.NewFault(core.CodeInvalid, "the agent does not take the option %s=%s: %s%s%s; change options in its settings", c.Name, c.Value, refused.Message, detail(refused.Data), offers).Because(err)
	case err != nil:
		return err
	}
	var now wire.Offer // one choice may change what others there are
	if result.Decode(&now) == nil && now.ConfigOptions != nil {
		o.ConfigOptions = now.ConfigOptions
	}
	return nil
}

// names returns what the agent offers to be chosen.
func (o *offer) names() string {
	var all []string
	for _, option := range o.ConfigOptions {
		all = append(all, option.ID)
	}
	if o.Modes != nil && !slices.Contains(all, wire.OptionMode) {
		all = append(all, wire.OptionMode)
	}
	if len(o.Models) > 0 && !slices.Contains(all, wire.OptionModel) {
		all = append(all, wire.OptionModel)
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}
