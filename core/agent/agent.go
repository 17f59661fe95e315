package agent

import (
	"context"
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
)

// Agent does tasks: a child process or a remote behind a connection of its own. A host gives it
// the tasks, whether that is the hub in the same process or a connection to one.
type Agent interface {
	// Run connects, calls ready once tasks can be done, and returns when ctx has ended or the
	// agent is lost, with the reason. It may be called again after it has returned: what must
	// survive a restart, such as the sessions of threads, is kept between two runs.
	Run(ctx context.Context, ready func(Profile)) error
	// Work does one task, from which it returns when the task has ended: with nil, or with the
	// error that it failed for (a [core.Fault] is passed on unchanged). If it has reported the
	// end itself, its error counts for nothing; nil without an end is [core.Done]. Work is
	// called only while Run is ready, up to the agent's number of concurrent tasks at once. A
	// task that is lost with the whole agent fails with [Lost]. When ctx ends nobody waits
	// for the task any more; a cancel comes from [Turn.Next] before that.
	Work(ctx context.Context, t Turn) error
}

// Profile is what an agent says of itself when it is ready. The settings of the agent come
// first: a Profile adds what they leave open.
type Profile struct {
	// Features are what the agent can do beyond answering.
	Features core.Features
	// Capabilities are added to those of the settings.
	Capabilities []string
	Model        string
	// Metadata is anything else, such as the name and version of the program.
	Metadata map[string]json.RawMessage
}

// Turn is one task at its agent. All methods may be called concurrently; one goroutine at a
// time calls Next.
type Turn interface {
	// Task names the task. It is unique among the tasks that the host gives.
	Task() core.TaskID
	// Request is what is asked.
	Request() core.Request
	// From is who asks, as the hub established it; zero where the host does not know. What the
	// agent remembers of a thread is for who asked alone: the name of a thread is no secret.
	From() core.Principal
	// Hops is how many tasks stand above this one in its chain of causes, for an agent that
	// passes the task on to another hub (promise P10); 0 where the host does not know.
	Hops() int
	// Trace is the trace context that the agent is to carry on; zero for none.
	Trace() core.Trace
	// Delivered says that the connection to the agent has taken the task, for the receipt.
	Delivered()
	// Report reports an event. foreign is what else the agent said, verbatim, or nil; hosts
	// whose dialect cannot carry it drop it. It may wait for room in the connection of a host,
	// until the ctx of Work ends. It returns a Fault for what was refused: conflict after the
	// end of the task.
	Report(body core.Body, foreign *core.Foreign) error
	// Next waits for what the agent is told: [core.ApprovalDecided], [core.Injected] and
	// [core.CancelRequested]. After a cancel the agent has a grace to report what is left and
	// the end. Next returns the cause of ctx.
	Next(ctx context.Context) (core.Body, error)
	// Ask puts a question to the people of the task and waits for what they say.
	Ask(ctx context.Context, q question.Question) (question.Outcome, error)
	// CallTool calls a tool of the hub or of a pack, and waits for its result.
	CallTool(ctx context.Context, name string, input json.RawMessage) (json.RawMessage, error)
}
