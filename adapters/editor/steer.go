package editor

import (
	"context"
	"encoding/json"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// steer gives the agent context while it works on a prompt of the editor. The request is answered once the agent has
// said whether it takes that, or has ended the turn.
func (c *connection) steer(ctx context.Context, id json.RawMessage, params strictjson.Value) *jsonrpc.Error {
	r, fault := wire.Read[wire.SteeringRequest](params)
	if fault != nil {
		return fault
	}
	conv := c.conversation(core.ThreadID(r.SessionID))
	if conv == nil {
		return unknownSession(r.SessionID)
	}
	said, err := requestOf(r.Prompt)
	switch {
	case err != nil:
		return errorOf(err)
	case len(said.Attachments) > 0:
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "prompt: only text reaches a turn that runs: send files with the next session/prompt")
	}
	in := core.Injected{ID: core.NewID(), Content: said.Content, Trace: wire.TraceOf(params)}
	p, task := conv.steered(in.ID, id)
	if p == nil {
		c.reply(ctx, id, wire.SteeringResponse{Outcome: wire.SteeringPromptRequired, Reason: "noRunningTurn"})
		return nil
	}
	if err := c.self.Inject(hub.NoWait, task, in); err != nil && p.unsteered(in.ID) != nil {
		c.reply(ctx, id, wire.SteeringResponse{Outcome: wire.SteeringFailed, Reason: core.AsFault(err).Message})
	}
	return nil
}

// steered notes a request to give context to the latest prompt that has a task; nil if there is none.
func (conv *conversation) steered(injection string, request json.RawMessage) (latest *prompt, of core.TaskID) {
	conv.c.mu.Lock()
	defer conv.c.mu.Unlock()
	for p := range conv.open {
		if p.task > of {
			latest, of = p, p.task
		}
	}
	if latest == nil {
		return nil, ""
	}
	if latest.steering == nil {
		latest.steering = map[string]json.RawMessage{}
	}
	latest.steering[injection] = request
	return latest, of
}

// unsteered removes the request of an injection, and returns its id; nil if it has its answer, or was none of the prompt.
func (p *prompt) unsteered(injection string) (request json.RawMessage) {
	if p == nil {
		return nil
	}
	c := p.conv.c
	c.mu.Lock()
	defer c.mu.Unlock()
	request = p.steering[injection]
	delete(p.steering, injection)
	return request
}

// steers reports whether an injection is one of the prompt that has no answer.
func (p *prompt) steers(injection string) bool {
	if p == nil {
		return false
	}
	c := p.conv.c
	c.mu.Lock()
	defer c.mu.Unlock()
	return p.steering[injection] != nil
}

// endSteering answers the requests that the agent has not answered when the turn ends.
func (p *prompt) endSteering(ctx context.Context) {
	c := p.conv.c
	c.mu.Lock()
	left := p.steering
	p.steering = nil
	c.mu.Unlock()
	for _, id := range left {
		c.reply(ctx, id, wire.SteeringResponse{Outcome: wire.SteeringFailed, Reason: "the turn ended before the agent answered"})
	}
}
