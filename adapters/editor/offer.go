package editor

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// An editor is offered what the agent behind can be set to, as its card says. What the editor chooses is set
// for each prompt of its session: agents know no editors, and others ask in the same thread.

// chosen is what a session of the editor can be set to, and what it is. connection.mu guards it.
type chosen struct {
	offer wire.Offer
	set   core.Options
}

// cardOffer returns what the agent of the connection can be set to, as far as it has said; nothing where
// several agents may answer.
func (c *connection) cardOffer() (offer wire.Offer) {
	all := c.agents()
	if len(all) != 1 || !all[0].Features.Has(core.FeatureOptions) {
		return offer
	}
	parts := map[string]json.RawMessage{}
	for _, name := range []string{"modes", "configOptions", "models"} {
		if raw := all[0].Metadata[name]; strictjson.Check(raw, strictjson.Limits{}) == nil {
			parts[name] = raw
		}
	}
	text := strictjson.Encode(parts)
	c.mu.Lock()
	defer c.mu.Unlock()
	if string(text) != string(c.card.text) { // sessions share what it says
		c.card.text, c.card.offer = text, wire.Offer{}
		if strictjson.ParseValid(text).Decode(&offer) == nil {
			c.card.offer, _ = offer.Kept()
		}
	}
	return c.card.offer.Clone()
}

// said is what the card of an agent says that it can be set to, and as an offer.
type said struct {
	text  json.RawMessage
	offer wire.Offer
}

// state returns the result of opening a session.
func (c *connection) state(conv *conversation, id string) wire.SessionState {
	card := c.cardOffer()
	c.mu.Lock()
	defer c.mu.Unlock()
	if conv.offer.IsSilent() {
		conv.offer = card
	}
	offer := conv.offer.Clone()
	return wire.SessionState{SessionID: id, Modes: offer.Modes, ConfigOptions: offer.Shown(c.booleans)}
}

// setMode sets the mode of a session.
func (c *connection) setMode(ctx context.Context, id json.RawMessage, params strictjson.Value) *jsonrpc.Error {
	p, fault := wire.Read[wire.SetMode](params)
	if fault != nil {
		return fault
	}
	conv, fault := c.choose(p.SessionID, core.OptionMode, p.ModeID)
	if fault != nil {
		return fault
	}
	c.reply(ctx, id, struct{}{})
	c.tellOptions(ctx, conv)
	return nil
}

// setConfigOption sets an option of a session. The answer has all options.
func (c *connection) setConfigOption(ctx context.Context, id json.RawMessage, params strictjson.Value) *jsonrpc.Error {
	p, fault := wire.Read[wire.SetConfigOption](params)
	if fault != nil {
		return fault
	}
	given := strictjson.ParseValid(p.Value)
	value, is := given.Text()
	if !is {
		value = string(given.Raw())
	}
	if given.Kind() != strictjson.String && given.Kind() != strictjson.Bool {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "value: want a string or a boolean")
	}
	conv, fault := c.choose(p.SessionID, p.ConfigID, value)
	if fault != nil {
		return fault
	}
	c.mu.Lock()
	all, modes := conv.offer.Shown(c.booleans), conv.offer.Modes
	c.mu.Unlock()
	c.reply(ctx, id, wire.SessionState{ConfigOptions: all})
	if p.ConfigID == core.OptionMode && modes != nil {
		_ = c.send(ctx, wire.AppendUpdate(nil, p.SessionID, strictjson.Encode(struct {
			SessionUpdate string `json:"sessionUpdate"`
			CurrentModeID string `json:"currentModeId"`
		}{wire.UpdateCurrentModeUpdate, value})))
	}
	return nil
}

// choose notes what the next prompts of a session are to be set to. The error names what there is.
func (c *connection) choose(session, name, value string) (*conversation, *jsonrpc.Error) {
	conv := c.conversation(core.ThreadID(session))
	if conv == nil {
		return nil, unknownSession(session)
	}
	card := c.cardOffer()
	c.mu.Lock()
	defer c.mu.Unlock()
	if conv.offer.IsSilent() {
		conv.offer = card
	}
	names := conv.offer.Names()
	switch {
	case len(names) == 0:
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the agent has not said what it can be set to: ask it something first, or choose another one with dragoman editor --agent")
	case !slices.Contains(names, name):
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the agent has no option %.80q: it has %s", name, strings.Join(names, ", "))
	}
	if option := conv.offer.Option(name); option != nil {
		if text, is := strictjson.ParseValid(option.ValueOf(value)).Text(); is {
			value = text
		} else {
			value = string(option.ValueOf(value))
		}
	}
	if values := conv.offer.Values(name); !slices.Contains(values, value) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the agent has no %s %.80q; it offers %s", name, value, strings.Join(values, ", "))
	}
	conv.set = maps.Clone(conv.set)
	if conv.set == nil {
		conv.set = core.Options{}
	}
	conv.set[name] = value
	conv.offer.Set(name, value)
	return conv, nil
}

// tellOptions tells the editor all options of a session, if there are any.
func (c *connection) tellOptions(ctx context.Context, conv *conversation) {
	c.mu.Lock()
	all := conv.offer.Shown(c.booleans)
	c.mu.Unlock()
	if len(all) == 0 {
		return
	}
	_ = c.send(ctx, wire.AppendUpdate(nil, string(conv.id), strictjson.Encode(struct {
		SessionUpdate string              `json:"sessionUpdate"`
		ConfigOptions []wire.ConfigOption `json:"configOptions"`
	}{wire.UpdateConfigOptionUpdate, all})))
}

// hear notes what an agent says of its options in a turn, and reports whether the editor is told in
// other words: one without booleans, or one that has chosen otherwise meanwhile. What the agent changes itself in a prompt
// of the editor stays so.
func (t *turn) hear(kind string, whole json.RawMessage) (other bool) {
	c, conv := t.conv.c, t.conv
	c.mu.Lock()
	defer c.mu.Unlock()
	if !conv.offer.Hear(&wire.Update{Kind: kind, Whole: strictjson.ParseValid(whole)}) {
		return false
	}
	conv.offer, _ = conv.offer.Kept()
	other = kind == wire.UpdateConfigOptionUpdate && !c.booleans
	if t.own() {
		before := t.prompt.heard
		t.prompt.heard = conv.offer.Clone()
		conv.set = maps.Clone(conv.set)
		for name, chosen := range conv.set {
			is, known := t.prompt.heard.Current(name)
			switch was, _ := before.Current(name); {
			case !known || is == chosen:
			case is != was:
				conv.set[name] = is
			default: // the next prompt sets it
				conv.offer.Set(name, chosen)
				other = true
			}
		}
	}
	return other
}

// learn tells the editor what the agent can be set to, once that is known.
func (t *turn) learn() {
	c, conv := t.conv.c, t.conv
	c.mu.Lock()
	silent := conv.offer.IsSilent()
	c.mu.Unlock()
	if !silent {
		return
	}
	if card := c.cardOffer(); !card.IsSilent() {
		c.mu.Lock()
		conv.offer = card
		c.mu.Unlock()
		c.tellOptions(t.ctx, conv)
	}
}
