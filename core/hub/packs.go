package hub

import (
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/pack"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// newPacks makes the registry of the packs of a hub.
func newPacks(l Limits, schema func([]byte) (func([]byte) error, error), count func(string)) *pack.Registry {
	return pack.NewRegistry(pack.Options{
		Limits: pack.Limits{
			Packs: l.Packs, Tools: l.PackTools, Calls: l.PackCalls, CallBytes: l.RequestBytes,
			Timeout: l.ToolTimeout, MaxTimeout: l.MaxToolTimeout,
		},
		Reserved: isBuiltin, Schema: schema, Count: count,
	})
}

// Provide offers the tools of a pack through the session, from now until it closes, in
// place of those that it provided before: see [pack.Registry.Provide]. It returns an
// unreachable Fault when the session has ended or the hub is stopping.
func (s *Session) Provide(id string, tools []tool.Definition) error {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return s.doing(core.Provide{Pack: id, Tools: names}, func() error { return s.provide(id, tools) })
}

func (s *Session) provide(id string, tools []tool.Definition) error {
	h := s.hub
	h.mu.Lock()
	draining := h.draining
	h.mu.Unlock()
	if draining != "" {
		return core.NewFault(core.CodeUnreachable, "the hub is stopping (%s): come again once it is back", draining)
	}
	err := h.packs.Provide(packPeer{s}, id, tools)
	if s.isClosed() { // maybe before the pack was there
		s.leavePacks(errEnded)
		return errEnded
	}
	if err != nil {
		return err
	}
	h.log.Info("pack provides tools", "pack", id, "dialect", s.identity.Dialect, "tools", len(tools))
	return nil
}

// WatchTools makes Next return a batch with ToolsChanged whenever packs came, went
// or changed after this call.
func (s *Session) WatchTools() {
	s.hub.packs.Watch(packPeer{s})
	if s.isClosed() { // maybe before it watched
		s.leavePacks(errEnded)
	}
}

var errEnded = core.NewFault(core.CodeUnreachable, "the connection has ended")

// leavePacks ends what the session provides, calls and watches.
func (s *Session) leavePacks(reason *core.Fault) {
	if id := s.hub.packs.Leave(packPeer{s}, reason); id != "" {
		s.hub.log.Info("pack left", "pack", id, "reason", reason.Message)
	}
}

// AnswerTool answers an execution that the session was given: see [pack.Registry.Answer].
// An answer that comes too late may still be of use to an agent, as context.
func (s *Session) AnswerTool(execution string, output json.RawMessage, fault *core.Fault) error {
	return s.hub.packs.Answer(packPeer{s}, execution, output, fault)
}

// Provider returns the session that is to answer an execution, or nil when nobody
// waits for it: for dialects in which a pack answers beside its connection.
func (h *Hub) Provider(execution string) *Session {
	p, _ := h.packs.Provider(execution).(packPeer)
	return p.session
}

// callPack calls a tool of a pack in the name of the session.
func (s *Session) callPack(call, name string, input json.RawMessage) {
	s.hub.packs.Call(pack.Call{
		Caller: packPeer{s}, ID: call, Tool: name, Input: input,
		From: s.identity.Principal, Agent: s.agentID(), Capabilities: s.capabilities(), Keep: s.identity.Keep,
	})
}

// packPeer is a session as the registry of packs knows it.
type packPeer struct{ session *Session }

// Execute implements [pack.Peer].
func (p packPeer) Execute(e *pack.Execution) { p.session.inbox.push(Batch{Execute: e}) }

// Returned implements [pack.Peer].
func (p packPeer) Returned(r *tool.Result) { p.session.inbox.push(Batch{Tool: r}) }

// ToolsChanged implements [pack.Peer].
func (p packPeer) ToolsChanged() { p.session.inbox.push(Batch{ToolsChanged: true}) }
