package pirpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Agent is pi as an [agent.Agent]. It is safe for concurrent use.
type Agent struct {
	opts     Options
	sessions *sessions
	pool     atomic.Pointer[pool] // nil while Run does not run
}

var _ agent.Agent = (*Agent)(nil)

// New returns an Agent. Nothing starts before [Agent.Run].
func New(opts Options) *Agent {
	return &Agent{opts: opts.withDefaults(), sessions: newSessions(opts.Agent, opts.Sessions)}
}

// features are what every version of pi can do.
const features = core.FeatureStreaming | core.FeatureUsage | core.FeatureToolStates | core.FeatureInjection |
	core.FeatureCancellation | core.FeatureApprovals | core.FeatureFiles

// Run implements [agent.Agent]. It is ready when a process has answered, and returns when one could
// not be started, never answered or ended unused: at once if no task runs, else after those.
func (a *Agent) Run(ctx context.Context, ready func(agent.Profile)) error {
	if err := a.sessions.load(ctx); err != nil {
		return fmt.Errorf("reading the sessions of pi: %w", err)
	}
	env, args, remove, err := a.arguments()
	if err != nil {
		return err
	}
	defer remove()
	ctx, cancel := context.WithCancel(ctx)
	p := newPool(ctx, &a.opts, env, args)
	defer p.close()
	defer cancel()
	p.mu.Lock()
	p.fill()
	p.mu.Unlock()
	defer a.pool.CompareAndSwap(p, nil)
	for first := p.first; ; {
		select {
		case <-first:
			first = nil
			profile := p.profile() // before a task takes the process
			a.pool.Store(p)
			ready(profile)
			continue
		case <-p.drained:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		lost, why := p.markLost()
		if !lost {
			continue // a task has come meanwhile, and a process has started for it
		}
		a.opts.Lost(why)
		if p.finish() {
			return why
		}
	}
}

// profile returns what the first process said of itself.
func (p *pool) profile() agent.Profile {
	profile := agent.Profile{Features: features}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.fresh) == 0 || p.fresh[0].state.Model == nil {
		return profile
	}
	model := p.fresh[0].state.Model
	profile.Model = model.ID
	profile.Metadata = map[string]json.RawMessage{"provider": strictjson.Encode(model.Provider)}
	return profile
}

// arguments returns what is added to the environment and the command of each process. remove
// removes the file that they name.
func (a *Agent) arguments() (env, args []string, remove func(), err error) {
	remove = func() {}
	if a.opts.SessionDir != "" {
		args = append(args, "--session-dir", a.opts.SessionDir)
	}
	if a.opts.Tools == nil {
		return nil, args, remove, nil
	}
	tools := a.opts.Tools()
	if tools.URL == "" {
		return nil, args, remove, nil
	}
	path, remove, err := writeExtension(a.opts.ExtensionDir)
	if err != nil {
		return nil, nil, nil, err
	}
	return tools.env(), append(args, "--extension", path), remove, nil
}

// errCancelled ends the wait for a process when the task is cancelled.
var errCancelled = errors.New("the task was cancelled")

// Work implements [agent.Agent]. The tasks of a requester in a thread run one after the other, each
// in their session.
func (a *Agent) Work(ctx context.Context, t agent.Turn) error {
	p := a.pool.Load()
	if p == nil {
		return agent.Lost(errors.New("pi is not running"))
	}
	ctx, stop := context.WithCancelCause(ctx)
	r := newRun(ctx, &a.opts, t)
	var listening sync.WaitGroup
	listening.Go(func() { r.listen(stop) })
	defer listening.Wait()
	defer stop(nil)
	err := a.work(ctx, p, r)
	switch {
	case errors.Is(err, errCancelled), errors.Is(context.Cause(ctx), errCancelled):
		return t.Report(core.Cancelled{Reason: r.cancelReason()}, nil)
	case errors.Is(err, &core.Fault{Code: core.CodeUnreachable}) && p.isOver():
		return agent.Lost(errors.New(core.AsFault(err).Message))
	}
	return err
}

// work does a task within the lane of its conversation.
func (a *Agent) work(ctx context.Context, p *pool, r *run) error {
	l, err := p.enter(ctx, agent.ConversationOf(r.turn))
	if err != nil {
		return err
	}
	usable := false
	// Few ask again where there was no thread, and their session is opened again.
	defer func() {
		p.leave(l, usable && !l.of.BeganWith(r.turn.Task()))
	}()
	proc, earlier, err := a.session(ctx, p, l, r)
	if err != nil {
		return asUnreachable(ctx, err)
	}
	usable, err = r.do(proc, earlier)
	if usable || proc.state.SessionFile != "" {
		known := a.sessions.of(l.of).turns()
		r.learn(known)
		a.remember(ctx, session{Conversation: l.of, File: proc.state.SessionFile, Last: known.Floor, Known: known.After})
	}
	return err
}

// session returns a process that has the session of a lane, which keeps it, and the
// turns of the conversation that the session lacks.
func (a *Agent) session(ctx context.Context, p *pool, l *lane, r *run) (*process, []core.Turn, error) {
	known := a.sessions.of(l.of)
	proc, err := p.processFor(ctx, l)
	if err != nil {
		return nil, nil, err
	}
	if proc.inUse {
		return proc, known.turns().Unseen(r.request.History), nil
	}
	proc.inUse = true
	if known.File != "" {
		continues, err := proc.resume(ctx, known.File)
		if err != nil {
			return nil, nil, err
		}
		if continues {
			return proc, known.turns().Unseen(r.request.History), nil
		}
	}
	if known.File != "" || known.Last != "" || len(known.Known) > 0 {
		a.opts.Count(countLost)
		if err := r.turn.Report(core.SessionLost{Reason: lostReason(known)}, nil); err != nil {
			return nil, nil, err
		}
	}
	if proc.state.SessionID != "" {
		if err := r.turn.Report(core.SessionStarted{Session: proc.state.SessionID}, nil); err != nil {
			return nil, nil, err
		}
	}
	a.remember(ctx, session{Conversation: l.of, File: proc.state.SessionFile})
	return proc, r.request.History, nil
}

func lostReason(of session) string {
	if of.File == "" {
		return "the process that had it has ended, and pi keeps no sessions (--no-session)"
	}
	return "pi could not open its session file"
}

// remember stores the session of a thread. The task does not depend on it.
func (a *Agent) remember(ctx context.Context, of session) {
	if err := a.sessions.put(context.WithoutCancel(ctx), of); err != nil {
		a.opts.Count(countUnwritten)
		a.opts.Log.Warn("the session of a thread was not recorded", "thread", of.Thread, "error", err)
	}
}

// asUnreachable returns the error of a task whose process was lost before it began.
func asUnreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var f *core.Fault
	if errors.As(err, &f) {
		return f
	}
	return core.NewFault(core.CodeUnreachable, "pi ended: %s", reasonText(err)).Because(err)
}
