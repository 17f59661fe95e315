package hub

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
)

// outcome is the result of a command.
type outcome struct {
	task     *task.Task          // of Open and Read
	readers  []task.ReaderStatus // of Readers
	question question.Outcome    // of Reply
	agent    *AgentStatus        // of Configure
}

// do is the door: every command comes through here, whatever the dialect. In this order the
// command is authorized, checked against the limits, tied to its trace and executed; the
// audit gets it with its outcome, also when it is refused. s is the session that gives the
// command, nil if the command needs none. local executes a command that does not say
// everything itself, such as one with a function; else it is nil. Only Read and Readers
// wait, for the journal.
func (h *Hub) do(ctx context.Context, s *Session, c core.Call, local func() error) (o outcome, err error) {
	act := c.Command.Act()
	if h.auditor != nil && act.IsAudited() {
		c.ID = core.NewID()
		defer func() { h.auditor.Audit(policy.Entry{At: time.Now(), Call: c, Err: err}) }()
	}
	t, err := h.object(ctx, c.Command)
	if err != nil {
		return o, err
	}
	var owner core.Principal
	if t != nil {
		owner = t.From()
		if owner.ID == "" && !h.authorizer.May(c.Principal, core.RightOperate, policy.Object{}) {
			return o, core.NewFault(core.CodeUnknownTask, "the beginning of task %s is no longer kept, and with it who asked", t.ID())
		}
	}
	if err := h.authorizer.Allow(c.Principal, c.Command, policy.Object{Owner: owner}); err != nil {
		return o, err
	}
	if h.limiter != nil {
		if err := h.limiter.Admit(c); err != nil {
			return o, err
		}
	}
	if h.tracer != nil && act.Span() != "" {
		trace, end := h.tracer.Begin(c)
		defer func() { end(err) }()
		c.Trace = trace
	}
	if local != nil {
		return o, local()
	}
	return h.execute(s, c, t)
}

// object returns the task that a command refers to, or nil.
func (h *Hub) object(ctx context.Context, c core.Command) (*task.Task, error) {
	switch c := c.(type) {
	case core.Cancel:
		return h.running(c.Task)
	case core.Inject:
		return h.running(c.Task)
	case core.Decide:
		return h.running(c.Task)
	case core.Read:
		return h.tasks.Find(ctx, c.Task)
	case core.Readers:
		return h.tasks.Find(ctx, c.Task)
	}
	return nil, nil
}

func (h *Hub) running(id core.TaskID) (*task.Task, error) {
	if t := h.tasks.Get(id); t != nil {
		return t, nil
	}
	return nil, core.NewFault(core.CodeUnknownTask, "no task %s runs here", id)
}

// execute executes a command on its task, if it has one.
func (h *Hub) execute(s *Session, c core.Call, t *task.Task) (o outcome, err error) {
	switch cmd := c.Command.(type) {
	case *core.Open:
		o.task, err = h.open(s, cmd, c.Trace)
	case core.Cancel:
		if err = t.Cancel(c.Principal.ID, cmd.Reason); err == nil {
			h.withdrawCalls(t)
		}
	case core.Inject:
		err = inject(t, c.Principal, cmd.Context)
	case core.Decide:
		err = h.decide(t, c.Principal, cmd.Decision)
	case core.Read:
		o.task = t
	case core.Readers:
		o.readers = t.Readers()
	case core.Reply:
		o.question, err = h.questions.Answer(c.Principal, cmd)
	case core.WatchAll:
		h.watchAll(s)
	case core.Configure:
		o.agent, err = h.configure(cmd)
	case core.Restart:
		err = h.restart(cmd.Name)
	default: // its method executes it, with what the command cannot hold
		err = core.NewFault(core.CodeInternal, "the command %s cannot be executed here", c.Command.Act())
	}
	return o, err
}

// do executes a command for the session.
func (s *Session) do(c core.Command) (outcome, error) {
	return s.hub.do(context.Background(), s, core.Call{Principal: s.identity.Principal, Command: c}, nil)
}

// doFunc is do for a command that the function executes.
func (s *Session) doFunc(c core.Command, local func() error) error {
	_, err := s.hub.do(context.Background(), s, core.Call{Principal: s.identity.Principal, Command: c}, local)
	return err
}

// list executes the command to read a list with the function.
func (h *Hub) list(p core.Principal, what core.Listed, local func() error) error {
	_, err := h.do(context.Background(), nil, core.Call{Principal: p, Command: core.List{What: what}}, local)
	return err
}

// mayRead reports whether the principal may read what the owner asked. What has no known
// owner is for those who may read everything.
func (h *Hub) mayRead(p, owner core.Principal) bool {
	if owner.ID == "" {
		return h.authorizer.May(p, core.RightOperate, policy.Object{})
	}
	return h.authorizer.May(p, core.RightRead, policy.Object{Owner: owner})
}
