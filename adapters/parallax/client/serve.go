package client

import (
	"context"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/link"
)

// Serve is [Work] with an [agent.Agent] in place of a handler: it gives work each task as a Turn. The dialect has
// no decisions on tool calls, no questions to people, no context for a task and no tools of the hub: what needs an
// approval is denied. Of a frame that only the agent's own dialect knows, the hub gets the name. The hub says
// neither who asks nor how many tasks stand above.
func Serve(ctx context.Context, conn link.Conn[[]byte, []byte], card core.Card, work func(context.Context, agent.Turn) error, opts WorkOptions) error {
	return Work(ctx, conn, card, func(ctx context.Context, r core.Request, _ func(core.Body) error) error {
		j := ctx.Value(jobKey{}).(*job) // of every handler
		return agent.NewRemote(agent.RemoteTask{
			ID: core.TaskID(j.ref.TaskID), Request: r, Undecided: "Parallax has no message for a decision: nobody can be asked",
			Say: func(ctx context.Context, b core.Body, _ *core.Foreign) error { return j.worker.report(ctx, j, b) },
		}).Work(ctx, work)
	}, opts)
}
