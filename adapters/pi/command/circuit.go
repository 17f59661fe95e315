package command

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
)

// Breaker says when a circuit opens and how it closes again. A zero field takes the
// default, see [Breakers].
type Breaker struct {
	// Failures is how many failures within Window open the circuit; negative never
	// opens it.
	Failures int
	Window   time.Duration
	// Open is how long an open circuit rejects calls. Then it lets Trials calls through: it
	// closes when all of them succeed and opens again when one fails.
	Open   time.Duration
	Trials int
}

// or takes the fields that are not set from standard.
func (b Breaker) or(standard Breaker) Breaker {
	return Breaker{
		cmp.Or(b.Failures, standard.Failures), cmp.Or(b.Window, standard.Window), cmp.Or(b.Open, standard.Open), cmp.Or(b.Trials, standard.Trials),
	}
}

// Breakers are the settings of all circuits (section 21; facts, section 7.2).
type Breakers struct {
	// Agent is of each agent; default 5 failures in 60 s, open for 30 s, 2 trials.
	Agent Breaker
	// BashSession is of the bash commands of each session, BashAll of all sessions
	// together; default 10 and 50 failures in 120 s, open for 30 s, 2 trials.
	BashSession, BashAll Breaker
}

// WithDefaults returns the breakers with their defaults in place.
func (b Breakers) WithDefaults() Breakers {
	return Breakers{
		Agent:       b.Agent.or(Breaker{Failures: 5, Window: time.Minute, Open: 30 * time.Second, Trials: 2}),
		BashSession: b.BashSession.or(Breaker{Failures: 10, Window: 2 * time.Minute, Open: 30 * time.Second, Trials: 2}),
		BashAll:     b.BashAll.or(Breaker{Failures: 50, Window: 2 * time.Minute, Open: 30 * time.Second, Trials: 2}),
	}
}

// slow is from when on a call is counted as slow. Slow calls open no circuit: unlike in
// the reference, a long run is healthy here.
const slow = 30 * time.Second

// Circuit is a circuit breaker with the numbers for get_metrics. It is safe for
// concurrent use.
type Circuit struct {
	name    string
	enabled bool
	open    time.Duration

	mu   sync.Mutex
	gate *gobreaker.TwoStepCircuitBreaker[struct{}]
	half bool // gate is half-open

	calls, rejected, slowCalls, successes, failures, trials int64
	latency                                                 time.Duration // sum over all that ended
	lastFailure, lastChange, lastAccess                     time.Time
}

// The results of calls that did not succeed.
var (
	ErrFailure      = errors.New("a failure")
	ErrInconclusive = errors.New("neither a success nor a failure") // says nothing about the agent
)

// NewCircuit returns a closed circuit.
func NewCircuit(name string, b Breaker) *Circuit {
	now := time.Now()
	c := &Circuit{name: name, enabled: b.Failures > 0, open: b.Open, lastChange: now, lastAccess: now}
	const buckets = 12 // the window slides in steps of a twelfth
	c.gate = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name: name, MaxRequests: uint32(min(max(b.Trials, 1), math.MaxUint32)), Interval: b.Window, BucketPeriod: b.Window / buckets, Timeout: b.Open,
		ReadyToTrip: func(n gobreaker.Counts) bool { return c.enabled && int64(n.TotalFailures) >= int64(b.Failures) },
		OnStateChange: func(_ string, _, now gobreaker.State) {
			c.half, c.lastChange, c.trials = now == gobreaker.StateHalfOpen, time.Now(), 0
		},
		IsExcluded: func(err error) bool { return errors.Is(err, ErrInconclusive) },
	})
	return c
}

// Call is a call that a circuit let through.
type Call struct {
	circuit *Circuit
	began   time.Time
	done    func(error)
}

// Allow lets a call through, or returns why not, in the words of the reference.
func (c *Circuit) Allow() (k Call, why string) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastAccess = now
	done, err := c.gate.Allow()
	switch {
	case errors.Is(err, gobreaker.ErrOpenState):
		c.rejected++
		left := c.open - now.Sub(c.lastChange)
		return Call{}, fmt.Sprintf("Circuit open for %s (recovery in %ds)", c.name, int(math.Ceil(max(left, 0).Seconds())))
	case err != nil:
		c.rejected++
		return Call{}, "Circuit half-open, max test calls reached for " + c.name
	}
	c.calls++
	if c.half {
		c.trials++
	}
	return Call{c, now, done}, ""
}

// End reports the result of a call: nil for success, [ErrFailure] or [ErrInconclusive].
func (k Call) End(err error) {
	c := k.circuit
	c.mu.Lock()
	defer c.mu.Unlock()
	took := time.Since(k.began)
	if !errors.Is(err, ErrInconclusive) {
		c.latency += took
		if took > slow {
			c.slowCalls++
		}
	}
	switch {
	case err == nil:
		c.successes++
	case errors.Is(err, ErrFailure):
		c.failures++
		c.lastFailure = time.Now()
	}
	k.done(err)
}

// CircuitReport has the numbers of one circuit. What the reference calls the provider is
// the agent here.
type CircuitReport struct {
	ProviderName    string `json:"providerName"`
	State           string `json:"state"`
	FailureCount    int    `json:"failureCount"`
	LastFailureTime *int64 `json:"lastFailureTime"`
	LastStateChange int64  `json:"lastStateChange"`
	LastAccessTime  int64  `json:"lastAccessTime"`
	TotalCalls      int64  `json:"totalCalls"`
	TotalRejected   int64  `json:"totalRejected"`
	TotalSlowCalls  int64  `json:"totalSlowCalls"`
	TotalSuccesses  int64  `json:"totalSuccesses"`
	TotalFailures   int64  `json:"totalFailures"`
	AvgLatencyMs    int64  `json:"avgLatencyMs"`
	HalfOpenCalls   int64  `json:"halfOpenCalls"`
}

// Report returns the numbers of the circuit.
func (c *Circuit) Report() CircuitReport {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := CircuitReport{
		ProviderName: c.name, State: c.state(), FailureCount: int(c.gate.Counts().TotalFailures), LastAccessTime: c.lastAccess.UnixMilli(),
		TotalCalls: c.calls, TotalRejected: c.rejected, TotalSlowCalls: c.slowCalls, TotalSuccesses: c.successes, TotalFailures: c.failures,
		HalfOpenCalls: c.trials, LastStateChange: c.lastChange.UnixMilli(),
	}
	if !c.lastFailure.IsZero() {
		r.LastFailureTime = new(c.lastFailure.UnixMilli())
	}
	if n := c.successes + c.failures; n > 0 {
		r.AvgLatencyMs = (c.latency / time.Duration(n)).Milliseconds()
	}
	return r
}

// state returns the state in the words of the specification (section 21.1).
func (c *Circuit) state() string {
	switch c.gate.State() {
	case gobreaker.StateOpen:
		return "open"
	case gobreaker.StateHalfOpen:
		return "half_open"
	default:
		return "closed"
	}
}
