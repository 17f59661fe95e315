package pi

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sony/gobreaker/v2"
)

// Breaker says when a circuit opens and how it closes again. A zero field takes the
// default of its use.
type Breaker struct {
	// Failures within Window open the circuit; negative leaves it closed for ever.
	Failures int
	Window   time.Duration
	// Open is how long it then refuses what is asked. Behind that, as many calls as
	// Trials are let through one by one or together: it closes when all of them
	// succeed and opens again when one fails.
	Open   time.Duration
	Trials int
}

// or takes what is not set from standard.
func (b Breaker) or(standard Breaker) Breaker {
	return Breaker{
		cmp.Or(b.Failures, standard.Failures), cmp.Or(b.Window, standard.Window), cmp.Or(b.Open, standard.Open), cmp.Or(b.Trials, standard.Trials),
	}
}

// Breakers are the circuits there are (section 21; facts, section 7.2).
type Breakers struct {
	// Agent is of each agent; default 5 failures in 60 s, open for 30 s, 2 trials.
	Agent Breaker
	// BashSession is of the bash commands of each session, BashAll of all sessions
	// together; default 10 and 50 failures in 120 s, open for 30 s, 2 trials.
	BashSession, BashAll Breaker
}

func (b Breakers) withDefaults() Breakers {
	return Breakers{
		Agent:       b.Agent.or(Breaker{Failures: 5, Window: time.Minute, Open: 30 * time.Second, Trials: 2}),
		BashSession: b.BashSession.or(Breaker{Failures: 10, Window: 2 * time.Minute, Open: 30 * time.Second, Trials: 2}),
		BashAll:     b.BashAll.or(Breaker{Failures: 50, Window: 2 * time.Minute, Open: 30 * time.Second, Trials: 2}),
	}
}

// slow is how long a call takes that is counted as slow. Slowness opens no circuit:
// a long run is a healthy one here, unlike in the reference.
const slow = 30 * time.Second

// circuit is a circuit breaker with the numbers that get_metrics tells. Server.mu
// guards it.
type circuit struct {
	name    string
	enabled bool
	half    bool // the gate is half-open
	open    time.Duration
	gate    *gobreaker.TwoStepCircuitBreaker[struct{}]

	calls, rejected, slowCalls, successes, failures, trials int64
	latency                                                 time.Duration // of all that ended, added up
	lastFailure, lastChange, lastAccess                     time.Time
}

// errNeither is the end of a call that says nothing about who was called.
var errNeither = errors.New("neither a success nor a failure")

// errFailure is the end of a call that failed.
var errFailure = errors.New("a failure")

func newCircuit(name string, b Breaker) *circuit {
	now := time.Now()
	c := &circuit{name: name, enabled: b.Failures > 0, open: b.Open, lastChange: now, lastAccess: now}
	const buckets = 12 // the window slides in steps of a twelfth
	c.gate = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name: name, MaxRequests: uint32(min(max(b.Trials, 1), math.MaxUint32)), Interval: b.Window, BucketPeriod: b.Window / buckets, Timeout: b.Open,
		ReadyToTrip: func(n gobreaker.Counts) bool { return c.enabled && int64(n.TotalFailures) >= int64(b.Failures) },
		OnStateChange: func(_ string, _, now gobreaker.State) {
			c.half, c.lastChange, c.trials = now == gobreaker.StateHalfOpen, time.Now(), 0
		},
		IsExcluded: func(err error) bool { return errors.Is(err, errNeither) },
	})
	return c
}

// call is one that a circuit let through.
type call struct {
	circuit *circuit
	began   time.Time
	done    func(error)
}

// allow lets a call through, or says why not in the words of the reference.
func (c *circuit) allow() (k call, why string) {
	now := time.Now()
	c.lastAccess = now
	done, err := c.gate.Allow()
	switch {
	case errors.Is(err, gobreaker.ErrOpenState):
		c.rejected++
		left := c.open - now.Sub(c.lastChange)
		return call{}, fmt.Sprintf("Circuit open for %s (recovery in %ds)", c.name, int(math.Ceil(max(left, 0).Seconds())))
	case err != nil:
		c.rejected++
		return call{}, "Circuit half-open, max test calls reached for " + c.name
	}
	c.calls++
	if c.half {
		c.trials++
	}
	return call{c, now, done}, ""
}

// end tells the circuit what became of a call: nil of a success, errFailure,
// errNeither.
func (k call) end(err error) {
	c := k.circuit
	took := time.Since(k.began)
	if !errors.Is(err, errNeither) {
		c.latency += took
		if took > slow {
			c.slowCalls++
		}
	}
	switch {
	case err == nil:
		c.successes++
	case errors.Is(err, errFailure):
		c.failures++
		c.lastFailure = time.Now()
	}
	k.done(err)
}

// state is the state in the words of the specification (section 21.1).
func (c *circuit) state() string {
	switch c.gate.State() {
	case gobreaker.StateOpen:
		return "open"
	case gobreaker.StateHalfOpen:
		return "half_open"
	default:
		return "closed"
	}
}

func (c *circuit) isOpen() bool { return c.gate.State() == gobreaker.StateOpen }

// recent is how many failures are within the window.
func (c *circuit) recent() int {
	_ = c.gate.State() // the window slides when the state is looked at
	return int(c.gate.Counts().TotalFailures)
}
