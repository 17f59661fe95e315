package pi_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

const askCommand = `{"type":"prompt","sessionId":"s","message":"hello"}`

// failWith returns the work of an agent that fails every task with the code.
func failWith(code core.Code) func(*testAgent, hub.Batch) {
	return answerWith(core.Failed{Fault: core.NewFault(code, "no")})
}

func TestRepeatedFailuresOfAnAgentOpenItsCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newServer(t, pi.Options{})
		var well atomic.Bool
		joinAgent(t, h, core.Card{ID: "a"}, func(a *testAgent, b hub.Batch) {
			if well.Load() {
				echoAgent(a, b)
				return
			}
			failWith(core.CodeInternal)(a, b)
		})
		c := dial(t, s, pi.ConnOptions{})
		c.open("s", "a")
		for range 5 {
			c.ok(askCommand) // the failure is in the message
		}
		c.fails(askCommand, "Circuit breaker open: Circuit open for a (recovery in 30s)")
		time.Sleep(10 * time.Second)
		c.fails(askCommand, "Circuit breaker open: Circuit open for a (recovery in 20s)")
		if f := c.ok(`{"type":"health_check"}`); !has(f, `"healthy":true`, `"hasOpenCircuit":true`, "One or more LLM provider circuits are open") {
			t.Errorf("health: got %s, want an open circuit and health", f.Raw)
		}
		f := c.ok(`{"type":"get_metrics"}`)
		if !has(f, `"providerName":"a","state":"open"`, `"totalCalls":5,"totalRejected":2`, `"totalFailures":5`, `"circuitOpen":2`) {
			t.Errorf("metrics: got %s, want an open circuit of a with 5 calls, 5 failures and 2 rejections", f.Raw)
		}

		time.Sleep(20*time.Second + 1)
		c.ok(askCommand) // a failing trial
		c.fails(askCommand, "Circuit breaker open: Circuit open for a (recovery in 30s)")
		time.Sleep(30*time.Second + 1)
		well.Store(true)
		c.ok(askCommand)
		if f := c.ok(`{"type":"get_metrics"}`); !has(f, `"state":"half_open"`, `"halfOpenCalls":1`) {
			t.Errorf("metrics: got %s, want a half open circuit with one trial", f.Raw)
		}
		c.ok(askCommand)
		if f := c.ok(`{"type":"get_metrics"}`); !has(f, `"providerName":"a","state":"closed"`) {
			t.Errorf("metrics: got %s, want a closed circuit", f.Raw)
		}
	})
}

func TestOnlyRealFailuresOpenACircuit(t *testing.T) {
	for _, tt := range []struct {
		name string
		work func(*testAgent, hub.Batch)
		open bool
	}{
		{"internal", failWith(core.CodeInternal), true},
		{"unreachable", failWith(core.CodeUnreachable), true},
		{"timeout", failWith(core.CodeTimeout), true},
		{"invalid", failWith(core.CodeInvalid), false},
		{"budget", failWith(core.CodeBudget), false},
		{"not authorized", failWith(core.CodeNotAuthorized), false},
		{"cancelled", answerWith(core.Cancelled{}), false},
		{"done", answerWith(core.Done{}), false},
		{"done after a long time", func(a *testAgent, b hub.Batch) {
			if assigned(b) {
				time.Sleep(4 * time.Minute)
				a.report(b.Task, core.Done{})
			}
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, s := newServer(t, pi.Options{Breakers: command.Breakers{Agent: command.Breaker{Failures: 2, Window: time.Hour}}})
				joinAgent(t, h, core.Card{ID: "a"}, tt.work)
				c := dial(t, s, pi.ConnOptions{})
				c.open("s", "a")
				c.doUnlimited(askCommand)
				c.doUnlimited(askCommand)
				if f := c.doUnlimited(askCommand); strings.HasPrefix(f.Error, "Circuit breaker open") != tt.open {
					t.Errorf("got error %q, want an open circuit %v", f.Error, tt.open)
				}
			})
		})
	}
}

func TestOldFailuresAndDisabledLimitsOpenNoCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for failures, pause := range map[int]time.Duration{2: time.Minute, -1: 0} {
			h, s := newServer(t, pi.Options{Breakers: command.Breakers{Agent: command.Breaker{Failures: failures}}})
			joinAgent(t, h, core.Card{ID: "a"}, failWith(core.CodeInternal))
			c := dial(t, s, pi.ConnOptions{})
			c.open("s", "a")
			for range 6 {
				c.ok(askCommand)
				time.Sleep(pause)
			}
		}
	})
}

func TestAFailingAgentDoesNotBlockAnother(t *testing.T) {
	h, s := newServer(t, pi.Options{Breakers: command.Breakers{Agent: command.Breaker{Failures: 1}}})
	joinAgent(t, h, core.Card{ID: "bad"}, failWith(core.CodeInternal))
	joinAgent(t, h, core.Card{ID: "good"}, echoAgent)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "bad")
	c.open("t", "good")
	c.ok(askCommand)
	c.fails(askCommand, "Circuit breaker open: Circuit open for bad (recovery in 30s)")
	c.ok(strings.Replace(askCommand, `"s"`, `"t"`, 1))
}
