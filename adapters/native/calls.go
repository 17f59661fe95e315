package native

import (
	"context"
	"sync"

	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// call executes a call of the peer, whose frame has so many bytes, or leaves it to later if it may
// wait.
func (s *session) call(ctx context.Context, c wire.Call, bytes int) error {
	switch cmd := c.Command.(type) {
	case *core.Open:
		return s.open(ctx, c, cmd)
	case core.Cancel:
		return s.steerNow(ctx, c, cmd.Task, bytes)
	case core.Inject:
		return s.steerNow(ctx, c, cmd.Task, bytes)
	case core.Decide:
		return s.steerNow(ctx, c, cmd.Task, bytes)
	case core.WatchAll:
		return s.watchAll(ctx, c)
	case core.Follow:
		return s.follow(ctx, c, cmd)
	case core.Subscribe:
		return s.subscribe(ctx, c, cmd)
	case core.CallTool:
		s.asks.CallTool(c.ID, cmd.Tool, cmd.Input)
		return nil // the result comes from Next
	case core.Provide:
		return s.reply(ctx, c.ID, done{c.ID}, s.provide(c, cmd))
	}
	return s.callLater(ctx, c, bytes)
}

// steerNow steers a task, or leaves it to later if that waits for another hub.
func (s *session) steerNow(ctx context.Context, c wire.Call, id core.TaskID, bytes int) error {
	if !s.hub.Holds(id) {
		return s.callLater(ctx, c, bytes)
	}
	return s.steer(ctx, hub.NoWait, c)
}

// steer cancels a task, pushes context to its agent or decides on a tool call of it. It waits for another
// hub until wait ends.
func (s *session) steer(ctx, wait context.Context, c wire.Call) error {
	switch cmd := c.Command.(type) {
	case core.Cancel:
		return s.reply(ctx, c.ID, done{c.ID}, s.asks.Cancel(cmd.Task, cmd.Reason))
	case core.Inject:
		if cmd.Context.ID == "" {
			cmd.Context.ID = core.NewID()
		}
		cmd.Context.Trace = c.Trace
		return s.reply(ctx, c.ID, struct {
			done
			Injection string `json:"injection"`
		}{done{c.ID}, cmd.Context.ID}, s.asks.Inject(wait, cmd.Task, cmd.Context))
	case core.Decide:
		return s.reply(ctx, c.ID, done{c.ID}, s.asks.Decide(wait, cmd.Task, cmd.Decision))
	}
	return nil
}

// beginning is the tag of a task that the peer opened or watches. The result of the call comes
// before the first event, whichever goroutine is first.
type beginning struct {
	call    string
	unknown map[string]string // members of the request, see wire.Call
	result  any               // of a call whose result does not name the task
	answer  sync.Once
}

// begin answers the call about a task, once.
func (s *session) begin(ctx context.Context, b *beginning, id core.TaskID) (err error) {
	b.answer.Do(func() {
		if b.result == nil {
			b.result = opened{done{b.call}, id, b.unknown}
		}
		err = s.send(s.opts.Link.Frames.Telling(ctx, id, false, 0), "result", b.result) // also where an event is being delivered
	})
	return err
}

// opened is the result of a call that opens a task.
type opened struct {
	done
	Task    core.TaskID       `json:"task"`
	Unknown map[string]string `json:"unknown,omitempty"`
}

func (s *session) open(ctx context.Context, c wire.Call, o *core.Open) error {
	b := &beginning{call: c.ID, unknown: c.Unknown}
	t, err := s.asks.Open(*o.Request, hub.OpenOptions{For: o.For, Keep: o.Keep, Unwatched: o.Unwatched, Private: o.Private, Tag: b, Trace: c.Trace})
	if err == nil {
		return s.begin(ctx, b, t.ID())
	}
	r := wire.Refusal{ID: c.ID, Fault: s.fault(err)}
	if t != nil {
		r.Task = t.ID()
	}
	return s.refuse(ctx, r)
}

func (s *session) follow(ctx context.Context, c wire.Call, cmd core.Follow) error {
	if c.With.Stop {
		s.asks.Unfollow(cmd.Thread)
		return s.send(ctx, "result", done{c.ID})
	}
	return s.reply(ctx, c.ID, done{c.ID}, s.asks.Follow(cmd.Thread, c.ID))
}

func (s *session) subscribe(ctx context.Context, c wire.Call, cmd core.Subscribe) error {
	if c.With.Stop {
		s.asks.Unsubscribe(cmd.Topics)
		return s.send(ctx, "result", done{c.ID})
	}
	if c.With.Resume {
		s.asks.Resubscribe()
		if len(cmd.Topics) == 0 {
			return s.send(ctx, "result", done{c.ID})
		}
	}
	return s.reply(ctx, c.ID, done{c.ID}, s.asks.Subscribe(cmd.Topics))
}

// provide offers the tools of a pack. The command names those of the definitions beside it.
func (s *session) provide(c wire.Call, cmd core.Provide) error {
	defined := map[string]tool.Definition{}
	for _, t := range c.With.Tools {
		defined[t.Name] = tool.Definition{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema, Timeout: t.Timeout(), Requires: t.Requires}
	}
	tools := make([]tool.Definition, 0, len(c.With.Tools))
	if len(cmd.Tools) == 0 { // all that are defined
		for _, t := range c.With.Tools {
			cmd.Tools = append(cmd.Tools, t.Name)
		}
	}
	for _, name := range cmd.Tools {
		d, ok := defined[name]
		if !ok {
			d.Name = name
		}
		tools = append(tools, d)
	}
	return s.asks.Provide(cmd.Pack, tools)
}

func toolsOf(all []tool.Definition) []wire.Tool {
	tools := make([]wire.Tool, len(all))
	for i, t := range all {
		tools[i] = wire.Tool{Name: t.Name, Description: t.Description, Pack: t.Pack, InputSchema: t.InputSchema, TimeoutMS: t.Timeout.Milliseconds(), Requires: t.Requires}
	}
	return tools
}

// callOf returns the call that a batch of a task belongs to; "" for none.
func callOf(tag any) string {
	switch tag := tag.(type) {
	case *beginning:
		return tag.call
	case string:
		return tag
	}
	return ""
}
