package client

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
)

// Agent is a remote agent. It implements [agent.Agent].
type Agent struct {
	opts     Options
	http     *http.Client // follows no redirect
	sessions sessions

	// run is what the Run that is ready knows; nil while none is.
	run atomic.Pointer[run]
	// failures counts the requests in a row that the remote did not answer, and answers
	// everything that it sent.
	failures, answers atomic.Uint64
	// doubt has a token once a request has failed.
	doubt chan struct{}
}

var _ agent.Agent = (*Agent)(nil)

// run is one call of Run that is ready.
type run struct {
	remote atomic.Pointer[remote]
	// over ends with Run; its cause is a Fault of [agent.Lost].
	over context.Context //nolint:containedctx // the parent of what tasks do, as long as Run runs

	mu      sync.Mutex
	checked chan struct{} // closed and replaced whenever the card was fetched again
}

// check notes that the card was fetched again.
func (r *run) check() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.checked)
	r.checked = make(chan struct{})
}

// lost returns why the remote is lost as a whole, nil if its card can be fetched. A task that
// could not be given to the remote waits for that, so that the host gives a remote which is
// gone no other.
func (a *Agent) lost(ctx context.Context, r *run) error {
	r.mu.Lock()
	checked := r.checked
	r.mu.Unlock()
	a.wake()
	select {
	case <-r.over.Done():
		return context.Cause(r.over)
	case <-checked:
	case <-ctx.Done():
	}
	return nil
}

// New returns the agent at a URL. It sends nothing before Run.
func New(opts Options) *Agent {
	opts = opts.withDefaults()
	a := &Agent{opts: opts, doubt: make(chan struct{}, 1)}
	a.sessions.init(opts)
	plain := *opts.HTTP
	plain.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	a.http = &plain
	return a
}

// How often something may fail in a row before Run gives the remote up.
const (
	maxCardFailures    = 3
	maxRequestFailures = 5
)

// Run implements [agent.Agent]. It is lost once its card could not be fetched three times in a
// row while it said nothing else, or five requests in a row failed.
func (a *Agent) Run(ctx context.Context, ready func(agent.Profile)) error {
	if err := a.sessions.load(ctx); err != nil {
		return err
	}
	r, err := a.fetch(ctx, nil)
	if err != nil {
		return err
	}
	over, end := context.WithCancelCause(ctx)
	current := &run{over: over, checked: make(chan struct{})}
	current.remote.Store(r)
	a.failures.Store(0)
	a.run.Store(current)
	ready(r.profile())
	err = a.watch(ctx, current)
	a.run.Store(nil)
	end(agent.Lost(errors.New(reason(err))))
	return err
}

// watch keeps the card up to date until ctx ends or the remote is gone, and returns why.
func (a *Agent) watch(ctx context.Context, current *run) error {
	pause := time.NewTimer(a.opts.Refresh)
	defer pause.Stop()
	again := a.opts.pace()
	again.Begin() // with the card that Run has fetched
	failed, answers, doubt := 0, uint64(0), a.doubt
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-doubt:
			if err := again.Wait(ctx); err != nil {
				return err
			}
		case <-pause.C:
		}
		before := current.remote.Load()
		r, err := a.fetch(ctx, before)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			current.remote.Store(r)
			current.check()
			if a.failures.Load() >= maxRequestFailures {
				return core.NewFault(core.CodeUnreachable, "the remote agent has a card, but does not answer %d requests in a row at %s", maxRequestFailures, withoutQuery(r.ends[0].url))
			}
			failed, doubt = 0, a.doubt
			pause.Reset(a.opts.Refresh)
			continue
		}
		a.opts.Count("a2a.agent.card_failed")
		a.opts.Log.Warn("the card of the remote agent could not be fetched again", "url", withoutQuery(a.opts.URL), "error", err)
		if failed++; failed == 1 {
			answers = a.answers.Load()
		}
		if failed >= maxCardFailures {
			if a.answers.Load() == answers {
				return err
			}
			failed, doubt = 0, a.doubt // it works without
			pause.Reset(a.opts.Refresh)
			continue
		}
		doubt = nil // it is fetched again soon
		pause.Reset(again.Next())
	}
}

// failed notes that the remote did not answer a request.
func (a *Agent) failed() {
	a.failures.Add(1)
	a.wake()
}

// wake makes Run fetch the card again.
func (a *Agent) wake() {
	select {
	case a.doubt <- struct{}{}:
	default:
	}
}

// answered notes that the remote said something.
func (a *Agent) answered() {
	if a.answers.Add(1); a.failures.Load() != 0 {
		a.failures.Store(0)
	}
}
