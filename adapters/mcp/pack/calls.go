package pack

import (
	"context"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/hub"
	hubpack "github.com/dragoman-hub/dragoman/core/pack"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/timer"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// calls are the executions of one run: those that run, and those that wait for their turn.
// The hub bounds how many there are, and the bytes of their inputs.
type calls struct {
	server  *server
	session *hub.Session
	ctx     context.Context //nolint:containedctx // the lifetime of the run
	workers sync.WaitGroup

	mu      sync.Mutex
	tools   map[string]listed
	all     map[string]*call // by the id of the execution, until it is answered
	waiting fifo.Queue[*call]
	running int
}

// offer replaces the tools, and returns their definitions.
func (cs *calls) offer(tools []listed) []tool.Definition {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.tools = make(map[string]listed, len(tools))
	all := make([]tool.Definition, 0, len(tools))
	for _, t := range tools {
		t.Timeout = cs.server.opts.MaxTime
		cs.tools[t.Name] = t
		all = append(all, t.Definition)
	}
	return all
}

// add starts an execution, or has it wait while Options.Calls run.
func (cs *calls) add(e *hubpack.Execution) {
	ctx, cancel := context.WithDeadlineCause(cs.ctx, e.Deadline, core.NewFault(core.CodeTimeout, "tool %s took longer than %s (max_time of the pack)", e.Tool, cs.server.opts.MaxTime))
	ctx, withdraw := context.WithCancelCause(ctx)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := &call{
		calls: cs, server: cs.server, execution: e, arguments: strictjson.ParseValid(e.Input), ctx: ctx, free: cancel, withdraw: withdraw,
		questions: timer.Pace{First: firstQuestion, Most: seldomQuestion},
	}
	c.tool, c.known = cs.tools[e.Tool]
	cs.all[e.ID] = c
	cs.waiting.Push(c)
	if cs.running < cs.server.opts.Calls {
		cs.running++
		cs.workers.Go(cs.work)
	}
}

// work runs calls until none waits.
func (cs *calls) work() {
	for {
		cs.mu.Lock()
		c, ok := cs.waiting.Pop()
		if !ok {
			cs.running--
			cs.mu.Unlock()
			return
		}
		cs.mu.Unlock()
		output, fault := c.perform()
		cs.mu.Lock()
		delete(cs.all, c.execution.ID)
		cs.mu.Unlock()
		c.withdraw(nil)
		c.free()
		_ = cs.session.AnswerTool(c.execution.ID, tool.Result{Output: output, Fault: fault, Foreign: c.result}) // an error means that nobody waits: the hub counts it
	}
}

// withdraw cancels an execution for whose result nobody waits.
func (cs *calls) withdraw(execution string) {
	cs.mu.Lock()
	c := cs.all[execution]
	cs.mu.Unlock()
	if c != nil {
		c.withdraw(core.NewFault(core.CodeCancelled, "nobody waits for the result any more"))
	}
}
