package client

import (
	"context"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/link"
)

// Serve is [Work] with an [agent.Agent] in place of a handler: it gives work each query and delegate as a Turn. The
// dialect has no decisions on tool calls, no questions to people and no tools of the hub: what needs an approval is
// denied. Of a frame that only the agent's own dialect knows, the hub gets the name. Who asks is never
// authenticated: an envelope does not say it.
func Serve(ctx context.Context, conn link.Conn[[]byte, []byte], card core.Card, work func(context.Context, agent.Turn) error, opts WorkOptions) error {
	return Work(ctx, conn, card, func(ctx context.Context, r core.Request, _ func(core.Body) error) error {
		o := ctx.Value(outcomeKey{}).(*outcome) // of every handler
		return agent.NewRemote(agent.RemoteTask{
			ID: core.TaskID(o.task.e.ID), Request: r, From: core.Principal{ID: o.task.e.From}, Trace: o.task.e.Trace().Carried(),
			Undecided: "ACP has no kind for a decision: nobody can be asked",
			Say:       func(ctx context.Context, b core.Body, _ *core.Foreign) error { return o.say(ctx)(b) },
		}).Work(ctx, work)
	}, opts)
}
