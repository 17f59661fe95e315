package hub

import (
	"context"
	"encoding/json"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/pack"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/tool"
)

const addressHelp = `An agent id, ids in order of preference (A,B), capability:NAME (or capability:A,B), domain:NAME, or * for whoever is free.`

// The names of the tools that open tasks.
const (
	askName      = "agent_ask"
	delegateName = "agent_delegate"
	notifyName   = "agent_notify"
)

// tools are the hub's own tools, and the functions that run them.
var tools = []struct {
	tool.Definition
	run func(*Session, string, json.RawMessage) (*tool.Result, error)
}{
	{builtin("agents_list", "List the agents on this hub by id, with what they can do and whether they are free. Where there are more than the limit, the answer says how many more, and after which id to go on.",
		schema(`"capability":{"type":"string"},"domain":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":500,"default":100},"after":{"type":"string","description":"Only agents whose id comes after this one."}`), 30*time.Second), runList},
	{builtin(askName, "Ask another agent and wait for its answer.",
		schema(`"to":{"type":"string","description":"`+addressHelp+`"},"content":{"type":"string"},"data":{},"timeout_seconds":{"type":"number","exclusiveMinimum":0}`, "to", "content"), 600*time.Second), runAsk},
	{builtin(delegateName, "Give another agent a task and go on without waiting; agent_result tells what became of it.",
		schema(`"to":{"type":"string","description":"`+addressHelp+`"},"content":{"type":"string"},"context":{"type":"object"}`, "to", "content"), 30*time.Second), runDelegate},
	{builtin("agent_result", "Tell what became of a task that was delegated, waiting for it if asked to.",
		schema(`"task_id":{"type":"string"},"wait_seconds":{"type":"number","minimum":0}`, "task_id"), 600*time.Second), runResult},
	{builtin(notifyName, "Tell another agent, or who subscribes to a topic, something without expecting an answer.",
		schema(`"to":{"type":"string","description":"`+addressHelp+` For subscribers of the topic alone: hub."},"topic":{"type":"string"},"data":{}`, "to", "topic"), 30*time.Second), runNotify},
	{builtin("agent_cancel", "Stop a task that was asked or delegated.",
		schema(`"task_id":{"type":"string"},"reason":{"type":"string"}`, "task_id"), 30*time.Second), runCancel},
	{builtin("task_readers", "List who reads a task, and how far each has read.",
		schema(`"task_id":{"type":"string"}`, "task_id"), 30*time.Second), runReaders},
	{askUserTool, runAskUser},
}

func builtin(name, description string, input json.RawMessage, timeout time.Duration) tool.Definition {
	return tool.Definition{Name: name, Description: description, InputSchema: input, Timeout: timeout}
}

func schema(properties string, required ...string) json.RawMessage {
	s := `{"type":"object","properties":{` + properties + `},"additionalProperties":false`
	if len(required) > 0 {
		r, _ := json.Marshal(required) // strings always encode
		s += `,"required":` + string(r)
	}
	return json.RawMessage(s + "}")
}

// Tools returns the hub's own tools that every agent may call.
func (h *Hub) Tools() []tool.Definition { return own(nil) }

// ToolsFor returns the tools that an agent of the principal with the capabilities may call: the
// hub's own, then those of packs by name.
func (h *Hub) ToolsFor(p core.Principal, capabilities []string) []tool.Definition {
	may := func(id string, by pack.Peer) bool { return h.mayCall(p, id, by) }
	return append(own(capabilities), h.packs.Tools(capabilities, may)...)
}

// mayCall reports whether the principal may call the tools of a pack.
func (h *Hub) mayCall(p core.Principal, id string, by pack.Peer) bool {
	return h.authorizer.May(p, core.RightAsk, policy.Object{Target: policy.Target{Pack: id}, Provider: by.Provider().Principal})
}

// Tools returns what the session may call: see [Hub.ToolsFor].
func (s *Session) Tools() []tool.Definition {
	return s.hub.ToolsFor(s.identity.Principal, s.capabilities())
}

// own returns the hub's tools for which the capabilities suffice.
func own(capabilities []string) []tool.Definition {
	out := make([]tool.Definition, 0, len(tools))
	for _, t := range tools {
		if t.CheckCaller(capabilities) == nil {
			out = append(out, t.Definition)
		}
	}
	return out
}

func isBuiltin(name string) bool {
	for _, t := range tools {
		if t.Name == name {
			return true
		}
	}
	return false
}

func (s *Session) capabilities() []string { return s.card.Load().Capabilities }

// CallTool calls a tool for the session. The result comes from Next with the id of the
// call.
func (s *Session) CallTool(call, name string, input json.RawMessage) {
	err := s.doFunc(core.CallTool{Tool: name, Input: input}, func() error {
		s.callTool(call, name, input)
		return nil
	})
	if err != nil {
		s.inbox.push(Batch{Tool: &tool.Result{Call: call, Fault: core.AsFault(err)}})
	}
}

// Call calls a tool for the session and waits for the result, which does not come from
// Next. When ctx ends, Call returns its cause, and what the tool asked is cancelled unless
// it was to be kept. When the session ends, Call returns why.
func (s *Session) Call(ctx context.Context, name string, input json.RawMessage) (*tool.Result, error) {
	b := s.Child()
	defer b.Close(core.NewFault(core.CodeCancelled, "the call has ended"))
	b.CallTool("", name, input)
	for {
		next, err := b.Next(ctx)
		if err != nil {
			return nil, err
		}
		if next.Tool != nil {
			return next.Tool, nil
		}
	}
}

func (s *Session) callTool(call, name string, input json.RawMessage) {
	for _, t := range tools {
		if t.Name != name {
			continue
		}
		var out *tool.Result
		err := t.CheckCaller(s.capabilities())
		if err == nil {
			out, err = t.run(s, call, input)
		}
		if err != nil {
			out = &tool.Result{Fault: core.AsFault(err)}
		}
		if out != nil {
			out.Call = call
			s.inbox.push(Batch{Tool: out})
		}
		return
	}
	s.callPack(call, name, input)
}

func output(v any) *tool.Result {
	b, err := json.Marshal(v)
	if err != nil {
		return &tool.Result{Fault: core.AsFault(err)}
	}
	return &tool.Result{Output: b}
}

// seconds converts a time span from the input of a tool. None is longer than a task may
// take.
func (h *Hub) seconds(n float64) time.Duration {
	return time.Duration(min(n, h.limits.MaxDeadline.Seconds()) * float64(time.Second))
}
