package hub

import (
	"context"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/rpc"
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
// command is checked against the limits, authorized and executed; the audit gets it with its outcome, also when it is refused. s is the session that gives the
// command, nil if the command needs none. local executes a command that does not say
// everything itself, such as one with a function; else it is nil. Read, Readers and Reply wait for
// the journal or another hub, and other commands on a task for another hub unless this one
// [Hub.Holds] the task.
func (h *Hub) do(ctx context.Context, s *Session, c core.Call, local func() error) (o outcome, err error) {
	defer func() { err = hidden(c.Command, err) }() // once the audit knows why
	if s != nil && s.identity.Frames != nil {
		defer func() { s.noteCommand(c.Command, o, err) }()
	}
	act := c.Command.Act()
	entered := s == nil || s.identity.Hub == "" // else the hub where it was given has counted and audited it
	if h.auditor != nil && act.IsAudited() && entered {
		c.ID = core.NewID()
		defer func() {
			e := policy.Entry{At: time.Now(), Call: c, Err: err}
			if o.task != nil {
				e.Task = o.task.ID()
			}
			h.auditor.Audit(e)
		}()
	}
	if h.limiter != nil && entered { // first, so that what is refused below counts, too
		if err := h.limiter.Admit(c); err != nil {
			return o, err
		}
	}
	t, about, err := h.object(ctx, c.Command, entered)
	if err != nil {
		return o, err
	}
	if err := h.authorize(c, t, about); err != nil {
		return o, err
	}
	if local != nil {
		return o, local()
	}
	return h.execute(ctx, s, c, t)
}

// authorize returns why a command may not be given, nil if it may. t is the task that it is about, if it is one.
func (h *Hub) authorize(c core.Call, t *task.Task, about policy.Object) error {
	if t != nil && about.Owner.ID == "" && !h.MayOperate(c.Principal) {
		return core.NewFault(core.CodeNotAuthorized, "the beginning of task %s is no longer kept, and with it who asked", t.ID()).Because(errHidden)
	}
	err := h.authorizer.Allow(c.Principal, c.Command, about)
	if err != nil && t != nil && !h.mayKnow(c.Principal, about) {
		return core.AsFault(err).Because(errHidden)
	}
	return err
}

// mayKnow reports whether the principal may know of the task that the object describes: it has a right on
// it, or an agent of its own works on it.
func (h *Hub) mayKnow(p core.Principal, about policy.Object) bool {
	has := func(r core.Right) bool { return h.authorizer.May(p, r, about) }
	return about.Provider.ID == p.ID || h.mayRead(p, about) || has(core.RightSteer) || has(core.RightApprove)
}

// errHidden is the cause of a refusal of which its principal is not told that there is such a task.
var errHidden = errors.New("the principal may not know of the task")

// hidden returns the error of a command for its principal: of a task that it may not know of, that of one that
// is not there.
func hidden(c core.Command, err error) error {
	if !errors.Is(err, errHidden) {
		return err
	}
	id := core.TaskID(c.Object())
	if c.Act().Steers() != 0 {
		return notRunning(id).Because(errHidden)
	}
	return task.Unknown(id).Because(errHidden)
}

// notRunning returns what is said of a command on a task that does not run for its principal: see [task.Unknown].
func notRunning(id core.TaskID) *core.Fault {
	return core.NewFault(core.CodeUnknownTask, "no task %s runs here for you: it never did, it has ended, or it is somebody else's", id)
}

// object returns what a command is about, and the task if it is one. A command that was given here
// waits for a task of another hub.
func (h *Hub) object(ctx context.Context, c core.Command, entered bool) (t *task.Task, about policy.Object, err error) {
	switch act := c.Act(); {
	case act.Steers() != 0:
		t, err = h.running(ctx, core.TaskID(c.Object()), entered)
	case act == core.ActRead || act == core.ActReaders:
		t, err = h.find(ctx, core.TaskID(c.Object()))
	case act == core.ActCallTool:
		about = h.ofPack(c.Object())
	case act == core.ActConfigure:
		about = h.ofAgent(core.AgentID(c.Object()))
	}
	if t == nil || err != nil {
		return nil, about, err
	}
	return t, h.ofTask(t), nil
}

// running returns a task that may run, of any hub. It may wait for its owner unless this hub
// [Hub.Holds] it.
func (h *Hub) running(ctx context.Context, id core.TaskID, entered bool) (*task.Task, error) {
	if t := h.tasks.Get(id); t != nil {
		return t, nil
	}
	if entered && !h.Holds(id) {
		ctx, cancel := context.WithTimeoutCause(ctx, rpc.AnswerTime, core.NewFault(core.CodeUnreachable, "the hub that has task %s does not answer: ask again in a moment", id))
		defer cancel()
		t, err := h.find(ctx, id)
		if !errors.Is(err, unknownTask) {
			return t, err
		}
	}
	return nil, notRunning(id)
}

// Holds reports whether a command on a task does not wait for another hub: this one owns it.
func (h *Hub) Holds(id core.TaskID) bool {
	if t := h.tasks.Get(id); t != nil {
		return !t.IsRemote()
	}
	name, _ := h.node.At(task.OwnerOf(id))
	return name == "" || name == h.node.Name()
}

// find returns a task of any hub. It may wait for the journal, and for other hubs.
func (h *Hub) find(ctx context.Context, id core.TaskID) (*task.Task, error) {
	if t := h.tasks.Get(id); t != nil {
		return t, nil
	}
	if h.remote != nil {
		return h.remote.Find(ctx, id)
	}
	return h.findHere(ctx, id)
}

// findHere is find for what this hub has in memory or in its journal.
func (h *Hub) findHere(ctx context.Context, id core.TaskID) (*task.Task, error) {
	return h.tasks.Find(id, func() ([]core.Event, error) { return h.journal.Read(ctx, id, 0, 0) })
}

// execute executes a command on its task, if it has one.
func (h *Hub) execute(ctx context.Context, s *Session, c core.Call, t *task.Task) (o outcome, err error) {
	switch cmd := c.Command.(type) {
	case *core.Open:
		o.task, err = h.open(s, cmd, c.Trace)
	case core.Cancel:
		if err = t.Cancel(c.Principal.ID, cmd.Reason); err == nil {
			h.withdrawCalls(t)
		}
	case core.Inject:
		cmd.Context.Trace = c.Trace
		err = inject(t, c.Principal, cmd.Context)
	case core.Decide:
		cmd.Decision.By = c.Principal.ID
		err = t.Decide(cmd.Decision)
	case core.Read:
		o.task = t
	case core.Readers:
		o.readers = t.Readers()
	case core.Reply:
		o.question, err = h.answerQuestion(ctx, c.Principal, cmd)
	case core.WatchAll:
		h.watchAll(s)
	case core.Configure:
		o.agent, err = h.configureAnywhere(ctx, c.Principal, cmd)
	case core.Restart:
		err = h.restartAnywhere(ctx, c.Principal, cmd.Name)
	case core.Drain:
		h.drain()
	default: // its method executes it, with what the command cannot hold
		err = core.NewFault(core.CodeInternal, "the command %s cannot be executed here", c.Command.Act())
	}
	if err == nil && t != nil {
		err = h.atOwner(ctx, s, c, t)
	}
	return o, err
}

// atOwner executes a command at the hub that owns its task, if that is another one. Nothing waits for a cancel.
func (h *Hub) atOwner(ctx context.Context, s *Session, c core.Call, t *task.Task) error {
	if !t.IsRemote() || c.Command.Act().Steers() == 0 {
		return nil
	}
	return h.remote.Do(ctx, c, t, s.identity.Hub)
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
