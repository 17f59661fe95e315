package native

import (
	"context"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// seenEvery is how often the hub is told that an agent is alive.
const seenEvery = time.Second

// receive handles one frame of the peer.
func (s *session) receive(ctx context.Context, raw []byte) error {
	if now := time.Now(); now.Sub(s.lastSeen) >= seenEvery {
		s.lastSeen = now
		s.agent.Seen()
	}
	frame, err := wire.Decode(raw, s.opts.FrameBytes)
	if err != nil {
		var r *wire.Refusal
		if !errors.As(err, &r) {
			return err
		}
		s.note(r.Fault, raw)
		return s.refuse(ctx, *r)
	}
	switch f := frame.(type) {
	case wire.Event:
		return s.report(ctx, f)
	case wire.Call:
		return s.call(ctx, f, len(raw))
	case wire.Answer:
		if err := s.asks.AnswerTool(f.Execution, tool.Result{Output: f.Output, Fault: f.Error}); err != nil {
			return s.refuse(ctx, wire.Refusal{Execution: f.Execution, Fault: s.fault(err)})
		}
		return nil
	case wire.Progress:
		if err := s.asks.ProgressTool(f.Execution, f.Detail); err != nil {
			return s.refuse(ctx, wire.Refusal{ID: f.ID, Execution: f.Execution, Fault: s.fault(err)})
		}
		return s.acknowledge(ctx, f.ID)
	case wire.Ask:
		return s.askPeople(ctx, f)
	case wire.Load:
		s.agent.SetLoad(f.State)
		return s.acknowledge(ctx, f.ID)
	case wire.Vitals:
		s.agent.SetVitals(core.Vitals{At: time.Now(), Status: f.Status, Active: f.Active, Metrics: f.Metrics})
		return s.acknowledge(ctx, f.ID)
	case wire.Tools:
		return s.listTools(ctx, f.ID)
	case wire.Greeting:
		return s.checkGreeting(ctx, f)
	}
	return nil
}

// listTools answers with the tools, whose changes the peer is told from now on.
func (s *session) listTools(ctx context.Context, id string) error {
	if !s.watchesTools {
		s.watchesTools = true
		s.asks.WatchTools()
	}
	return s.send(ctx, "result", struct {
		done
		Tools []wire.Tool `json:"tools"`
	}{done{id}, toolsOf(s.asks.Tools())})
}

// checkGreeting ends the connection of a peer that speaks another version.
func (s *session) checkGreeting(ctx context.Context, f wire.Greeting) error {
	if f.Native == wire.Version {
		return nil
	}
	why := core.NewFault(core.CodeUnsupported, "this hub speaks version %d of the dialect, not %d", wire.Version, f.Native)
	if err := s.refuse(ctx, wire.Refusal{Fault: why, Fatal: true}); err != nil {
		return err
	}
	return link.Because(link.Protocol, "%s", why.Message)
}

const countGarbage = "native.garbage"

// note counts a frame that cannot be read. Of a child the operator reads it too: it may be all
// that a child says that prints to stdout and never reads an error.
func (s *session) note(why *core.Fault, raw []byte) {
	if !s.supervised {
		s.hub.Count(countGarbage)
		return
	}
	s.noise.Skip(countGarbage, "a line of the agent was skipped", "problem", why.Message, "line", wire.Excerpt(raw))
}

// acknowledge answers a frame that wants to be answered.
func (s *session) acknowledge(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	return s.send(ctx, "result", done{id})
}

// report passes an event of the agent to the hub.
func (s *session) report(ctx context.Context, e wire.Event) error {
	ends := e.Body.Kind().Ends()
	if h := s.heldTask(e.Task); h != nil {
		var half bool
		if e.Body, half = h.pieces.Join(e.Body, e.Piece); half && e.Foreign == nil {
			return s.acknowledge(ctx, e.ID) // the next piece has the other half
		}
		if ends {
			for _, left := range h.pieces.Rest() {
				_ = s.agent.Report(e.Task, left, nil) // or the end is refused, too
			}
		}
	}
	held := ends && s.drop(e.Task) // before the hub says that the task has ended
	err := s.agent.Report(e.Task, e.Body, e.Foreign)
	if err == nil {
		if len(e.Unknown) == 0 {
			return s.acknowledge(ctx, e.ID)
		}
		return s.send(ctx, "result", struct {
			done
			Unknown map[string]string `json:"unknown"`
		}{done{e.ID}, e.Unknown})
	}
	f := s.fault(err)
	if held && f.Code == core.CodeInvalid { // the task goes on
		s.hold(e.Task)
	}
	return s.refuse(ctx, wire.Refusal{ID: e.ID, Task: e.Task, Fault: f})
}

// rejected answers a message that the transport refused.
func (s *session) rejected(ctx context.Context, r *link.Reject) error {
	id, task := wire.Names([]byte(r.Head))
	f := core.NewFault(core.CodeInvalid, "%s", r.Text)
	if r.Cause == link.TooLarge {
		f = core.NewFault(core.CodeTooLarge, "%s: send less, or in several frames", r.Text)
	}
	s.note(f, []byte(r.Head))
	return s.refuse(ctx, wire.Refusal{ID: id, Task: task, Fault: f})
}
