package client

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// A session is set to what the settings of the agent say when it is opened, and to what a task wants
// before its prompt (session config options, session modes). What a task has changed is undone before the
// next one. A task must not run in another mode than it should: an error fails it.

// choices is what a session can be set to, and what it is.
type choices struct {
	offer wire.Offer // guarded by session.mu; the reader loop keeps it up to date
	// before has what tasks have changed, as it was: it belongs to the holder of the slot. It is kept beyond the run of
	// the hub, before the agent is set: an agent may keep its sessions as they were set last.
	before core.Options
}

// offered returns what the session can be set to.
func (s *session) offered() wire.Offer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offer.Clone()
}

// changeOffer changes what is known of what the session can be set to, if change says that there is news. Of
// an offer that is too large nothing is kept, as of an agent that does not say.
func (c *connection) changeOffer(s *session, change func(*wire.Offer) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !change(&s.offer) {
		return
	}
	var small bool
	if s.offer, small = s.offer.Kept(); !small {
		c.opts.Count("editor.options_too_many")
	}
}

// opened takes what the agent has answered of a session, and sets it to what the settings say. The error
// is a Fault that names what the agent offers.
func (c *connection) opened(ctx context.Context, s *session, store *sessions, answer strictjson.Value) error {
	var offer wire.Offer
	if err := answer.Decode(&offer); err != nil && !answer.Absent() {
		if len(c.opts.Set) > 0 {
			return core.NewFault(core.CodeInvalid, "what the agent offers to choose from cannot be read: %s", err)
		}
		offer = wire.Offer{}
	}
	c.changeOffer(s, func(o *wire.Offer) bool { *o = offer; return true })
	for _, name := range c.opts.Set.Names() {
		err := c.set(ctx, s, name, c.opts.Set[name])
		var f *core.Fault
		switch {
		case errors.As(err, &f) && f.Code == core.CodeInvalid:
			return core.NewFault(f.Code, "%s; change options in its settings", f.Message).Because(err)
		case err != nil:
			return err
		}
	}
	if now := s.offered(); !now.IsSilent() && store.keepOffer(ctx, strictjson.Encode(now)) {
		announce(c.opts, store.lastOffer())
	}
	return nil
}

// setFor sets the session to what a task wants.
func (c *connection) setFor(ctx context.Context, s *session, store *sessions, task core.Options) error {
	undone := false
	for _, name := range s.before.Names() {
		if _, again := task[name]; again {
			continue
		}
		if err := c.set(ctx, s, name, s.before[name]); err != nil {
			if core.AsFault(err).Code == core.CodeInvalid { // it would refuse that before every task
				s.over = "the agent could not be set as before the task before"
				c.endSession(ctx, s.id)
			}
			return err
		}
		delete(s.before, name)
		undone = true
	}
	news, err := c.remember(s, task)
	if undone || news {
		store.keep(ctx, s)
	}
	if err != nil {
		return err
	}
	for _, name := range task.Names() {
		if err := c.set(ctx, s, name, task[name]); err != nil {
			return err
		}
	}
	return nil
}

// remember notes what a task is about to change, and reports whether that is news.
func (c *connection) remember(s *session, task core.Options) (news bool, err error) {
	for _, name := range task.Names() {
		was, known, err := c.before(s, name)
		if err != nil {
			return news, err
		}
		if _, has := s.before[name]; known && !has {
			if s.before == nil {
				s.before = core.Options{}
			}
			s.before[name], news = was, true
		}
	}
	return news, nil
}

// before returns what the task after the next one is to have, and whether that is known. A task sets nothing that
// could not be undone.
func (c *connection) before(s *session, name string) (was string, known bool, err error) {
	if was, known = s.before[name]; known {
		return was, true, nil
	}
	offer := s.offered()
	if was, known = offer.Current(name); !known {
		was, known = c.opts.Set[name]
	}
	if !known && !s.once && (offer.IsSilent() || slices.Contains(offer.Names(), name)) {
		return "", false, core.NewFault(core.CodeInvalid, "the agent does not say what %s is, so that the next task of the conversation could not be as before: set it in the settings of the agent, or ask outside of a conversation", name)
	}
	return was, known, nil
}

// set sets the session to one value, unless that is how it is. An agent that has not said what it offers
// is asked.
func (c *connection) set(ctx context.Context, s *session, name, value string) error {
	o := s.offered()
	if is, known := o.Current(name); known && is == value {
		return nil
	}
	option := o.Option(name)
	switch {
	case option != nil:
		params := wire.SetConfigOption{SessionID: s.id, ConfigID: name, Value: option.ValueOf(value)}
		if string(params.Value) == string(option.CurrentValue) {
			return nil
		}
		if option.Type == wire.OptionBoolean {
			params.Type = wire.OptionBoolean
		}
		return c.ask(ctx, s, name, value, wire.MethodSessionSetConfigOption, params)
	case name == core.OptionMode && (o.Modes != nil || o.IsSilent()):
		if values := o.Values(name); len(values) > 0 && !slices.Contains(values, value) {
			return core.NewFault(core.CodeInvalid, "the agent has no mode %q; it offers %s", value, strings.Join(values, ", "))
		}
		return c.ask(ctx, s, name, value, wire.MethodSessionSetMode, wire.SetMode{SessionID: s.id, ModeID: value})
	case name == core.OptionModel && len(o.Models) > 0:
		return c.ask(ctx, s, name, value, wire.MethodSetModel, wire.SetModel{SessionID: s.id, ModelID: value})
	case o.IsSilent():
		return c.ask(ctx, s, name, value, wire.MethodSessionSetConfigOption, wire.SetConfigOption{SessionID: s.id, ConfigID: name, Value: strictjson.Encode(value)})
	}
	names := strings.Join(o.Names(), ", ")
	if names == "" {
		names = "none"
	}
	return core.NewFault(core.CodeInvalid, "the agent has no option %q: it has %s", name, names)
}

// ask asks the agent to set something. It may have more values than those that it lists, such as models.
func (c *connection) ask(ctx context.Context, s *session, name, value, method string, params any) error {
	_, err := c.call(ctx, method, params, func(m jsonrpc.Message) {
		if m.Err != nil {
			return
		}
		var now wire.Offer // one choice may change what others there are
		told := m.Result.Decode(&now) == nil && now.ConfigOptions != nil
		c.changeOffer(s, func(o *wire.Offer) bool {
			if o.Set(name, value); told {
				o.Replace(now.ConfigOptions)
			}
			return true
		})
	}, ignore)
	var refused *jsonrpc.Error
	if errors.As(err, &refused) {
		offers, offer := "", s.offered()
		if values := offer.Values(name); len(values) > 0 {
			offers = "; it offers " + strings.Join(values, ", ")
		}
		return core.NewFault(core.CodeInvalid, "the agent does not take the option %s=%s: %s%s%s", name, value, refused.Message, detail(refused.Data), offers).Because(err)
	}
	return err
}

// announce tells what the sessions of the agent can be set to, and what a new one is; nil is nothing.
func announce(opts Options, offer json.RawMessage) {
	if opts.Announce == nil || len(offer) == 0 {
		return
	}
	all := map[string]json.RawMessage{}
	for name, value := range strictjson.ParseValid(offer).Members() {
		all[string(name)] = value.Clone()
	}
	opts.Announce(all)
}
