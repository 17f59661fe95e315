package pirpc

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/link"
)

// pool has the processes of one [Agent.Run].
type pool struct {
	ctx       context.Context //nolint:containedctx // the lifetime of the processes
	opts      *Options
	env, args []string // of each process

	processes sync.WaitGroup
	first     chan struct{} // closed once a process is ready
	drained   chan struct{} // has a value when the pool may have drained: see isDrained

	mu       sync.Mutex
	fresh    []*process // ready, without a thread
	starting int
	waiters  []chan taken
	lanes    map[agent.Conversation]*lane
	tasks    int   // that run, or wait for their turn in a lane
	failure  error // a process that was not used has ended with it
	isLost   bool  // the failure is told: see markLost
	closed   error // why nothing is taken any more
}

// taken is what a waiter gets.
type taken struct {
	process *process
	err     error
}

// lane is the way of the tasks of one conversation: one at a time.
type lane struct {
	of      agent.Conversation
	turn    chan struct{} // holds a token while a task runs
	users   int           // tasks that run or wait
	process *process      // nil if it has none now
	since   time.Time     // when the process became idle; zero while it works
	expiry  *time.Timer
}

func newPool(ctx context.Context, opts *Options, env, args []string) *pool {
	return &pool{ctx: ctx, opts: opts, env: env, args: args, first: make(chan struct{}), drained: make(chan struct{}, 1), lanes: map[agent.Conversation]*lane{}}
}

// enter waits until the task is the only one of its conversation, and returns the lane of that.
// The caller calls leave.
func (p *pool) enter(ctx context.Context, of agent.Conversation) (*lane, error) {
	p.mu.Lock()
	l := p.lanes[of]
	if l == nil {
		l = &lane{of: of, turn: make(chan struct{}, 1)}
		p.lanes[of] = l
	}
	l.users++
	p.tasks++
	p.mu.Unlock()
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		l.users--
		p.tasks--
		p.tidy(l)
		p.check()
		return nil, context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l.since = time.Time{}
	if l.expiry != nil {
		l.expiry.Stop()
	}
	return l, nil
}

// leave ends the task of a lane. The process stays with the lane for the next task, unless the
// task made it unusable.
func (p *pool) leave(l *lane, usable bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tasks--
	l.users--
	switch {
	case l.process == nil:
	case !usable || p.closed != nil:
		l.process.end("its task ended without it")
		l.process = nil
	default:
		l.since = time.Now()
		idle := l.since
		l.expiry = time.AfterFunc(p.opts.IdleAfter, func() { p.expire(l, idle) })
		p.evict()
	}
	<-l.turn
	p.tidy(l)
	p.check()
}

// tidy forgets a lane that nobody uses. Callers hold mu.
func (p *pool) tidy(l *lane) {
	if l.users == 0 && l.process == nil {
		delete(p.lanes, l.of)
	}
}

// expire ends a process that is idle since then.
func (p *pool) expire(l *lane, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.process != nil && l.since.Equal(since) {
		p.drop(l, "its thread was idle")
	}
}

// evict ends the processes that are idle for longest, beyond MaxSessions. Callers hold mu.
func (p *pool) evict() {
	for {
		var idle []*lane
		for _, l := range p.lanes {
			if l.process != nil && !l.since.IsZero() {
				idle = append(idle, l)
			}
		}
		if len(idle) <= p.opts.MaxSessions {
			return
		}
		oldest := slices.MinFunc(idle, func(a, b *lane) int { return a.since.Compare(b.since) })
		p.opts.Count(countEvicted)
		p.drop(oldest, "other threads need its room")
	}
}

// drop ends the process of an idle lane. Callers hold mu.
func (p *pool) drop(l *lane, why string) {
	l.process.end(why)
	l.process = nil
	p.tidy(l)
}

// processFor returns the process of a lane, or gives it one.
func (p *pool) processFor(ctx context.Context, l *lane) (*process, error) {
	p.mu.Lock()
	proc := l.process
	if proc != nil && (!proc.alive() || proc.isBusy()) {
		proc.end("an extension has begun other work")
		l.process, proc = nil, nil
	}
	p.mu.Unlock()
	if proc != nil {
		return proc, nil
	}
	proc, err := p.take(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed != nil {
		proc.end("pi is not running")
		return nil, p.closed
	}
	l.process = proc
	return proc, nil
}

// take returns a process without a thread, for which it may wait until one has started.
func (p *pool) take(ctx context.Context) (*process, error) {
	p.mu.Lock()
	if p.closed != nil {
		defer p.mu.Unlock()
		return nil, p.closed
	}
	if i := slices.IndexFunc(p.fresh, (*process).alive); i >= 0 {
		defer p.mu.Unlock()
		taken := p.fresh[i]
		p.fresh = slices.Delete(p.fresh, i, i+1)
		p.fill()
		return taken, nil
	}
	w := make(chan taken, 1)
	p.waiters = append(p.waiters, w)
	p.fill()
	p.mu.Unlock()
	select {
	case t := <-w:
		return t.process, t.err
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		if i := slices.Index(p.waiters, w); i >= 0 {
			p.waiters = slices.Delete(p.waiters, i, i+1)
		} else if t := <-w; t.process != nil {
			p.offer(t.process)
		}
		return nil, context.Cause(ctx)
	}
}

// fill starts as many processes as are wanted. After a failure only those that somebody waits
// for: the supervisor decides when to try again. Callers hold mu.
func (p *pool) fill() {
	wanted := len(p.waiters)
	if p.failure == nil {
		wanted += p.opts.Warm
	}
	for _, proc := range p.fresh {
		if proc.alive() { // else it is about to be gone
			wanted--
		}
	}
	for p.closed == nil && p.starting < wanted {
		p.starting++
		p.processes.Go(p.start)
	}
}

// start runs one process until it ends.
func (p *pool) start() {
	conn, err := p.opts.Dial(p.ctx, p.env, p.args...)
	if err != nil {
		p.gone(nil, false, err)
		return
	}
	proc, ready := newProcess(p.opts, conn), false
	reason := proc.start(p.ctx, func() {
		ready = true
		p.ready(proc)
	})
	p.gone(proc, ready, &reason)
}

// ready takes a process that has answered.
func (p *pool) ready(proc *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starting--
	if !p.isLost {
		p.failure = nil
	}
	select {
	case <-p.first:
	default:
		close(p.first)
	}
	p.offer(proc)
}

// offer gives a process to who waits for longest, or keeps it for the next. Callers hold mu.
func (p *pool) offer(proc *process) {
	if len(p.waiters) > 0 {
		p.waiters[0] <- taken{process: proc}
		p.waiters = p.waiters[1:]
		return
	}
	p.fresh = append(p.fresh, proc)
}

// gone handles the end of a process. One that never got ready, or that nobody had used, is a
// failure: starting it again and again would help nobody.
func (p *pool) gone(proc *process, ready bool, why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !ready {
		p.starting--
	}
	if i := slices.Index(p.fresh, proc); proc != nil && i >= 0 {
		p.fresh, ready = slices.Delete(p.fresh, i, i+1), false
	}
	for _, l := range p.lanes {
		if proc != nil && l.process == proc {
			l.process = nil
			p.tidy(l)
		}
	}
	if !ready && p.closed == nil {
		p.failure = why
		p.opts.Log.Warn("a process of pi failed", "dir", p.opts.Dir, "error", why)
		if len(p.waiters) > 0 && p.starting < len(p.waiters) {
			p.waiters[0] <- taken{err: core.NewFault(core.CodeUnreachable, "pi could not be started: %s", reasonText(why)).Because(why)}
			p.waiters = p.waiters[1:]
		}
	}
	p.check()
}

// check tells Run that the pool has drained if it has. Callers hold mu.
func (p *pool) check() {
	if p.isDrained() && p.closed == nil {
		select {
		case p.drained <- struct{}{}:
		default: // it was told
		}
	}
}

// isDrained reports whether the pool has failed and no task uses it. Callers hold mu.
func (p *pool) isDrained() bool { return p.failure != nil && p.tasks == 0 && p.starting == 0 }

// markLost reports whether the pool has drained, and why it has failed. From then on it stays failed: processes start
// only for tasks that come nevertheless.
func (p *pool) markLost() (lost bool, why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isDrained() {
		return false, nil
	}
	p.isLost = true
	return true, p.failure
}

// finish closes the pool, and reports whether it has: not while a task that has come meanwhile uses it.
func (p *pool) finish() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isDrained() {
		return false
	}
	p.closed = core.NewFault(core.CodeUnreachable, "pi is restarted: %s", reasonText(p.failure))
	return true
}

// isOver reports whether the pool gives no more processes.
func (p *pool) isOver() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isDrained() || p.closed != nil || p.ctx.Err() != nil
}

// close ends all processes, whose context has ended, and waits for them.
func (p *pool) close() {
	p.mu.Lock()
	if p.closed == nil {
		p.closed = core.NewFault(core.CodeUnreachable, "pi is not running")
	}
	for _, l := range p.lanes {
		if l.expiry != nil {
			l.expiry.Stop()
		}
	}
	waiters := p.waiters
	p.waiters = nil
	for _, w := range waiters {
		w <- taken{err: p.closed}
	}
	p.mu.Unlock()
	p.processes.Wait()
}

// reasonText is why a process ended, in words.
func reasonText(err error) string {
	var r *link.Reason
	if errors.As(err, &r) {
		if r.Text == "peer closed" {
			return "the process ended"
		}
		return r.Error()
	}
	return err.Error()
}
