package command_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core"
)

func TestAHalfOpenCircuitAllowsOnlyItsTrials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := command.NewCircuit("a", command.Breaker{Failures: 1, Window: time.Minute, Open: time.Second, Trials: 2})
		k, _ := c.Allow()
		k.End(command.ErrFailure)
		time.Sleep(time.Second + 1)
		first, _ := c.Allow()
		second, _ := c.Allow()
		if _, why := c.Allow(); why != "Circuit half-open, max test calls reached for a" {
			t.Errorf("third trial: got %q, want none", why)
		}
		first.End(command.ErrInconclusive) // which frees its place
		third, why := c.Allow()
		if why != "" {
			t.Fatalf("a trial in its place: got %q, want one", why)
		}
		second.End(nil)
		third.End(nil)
		if got := c.Report().State; got != "closed" {
			t.Errorf("state: got %s, want closed", got)
		}
	})
}

func TestCircuitsAreBounded(t *testing.T) {
	cs := command.NewAgentCircuits(command.Breakers{}.WithDefaults().Agent)
	const most = 1000
	for i := range most + 10 {
		if _, err := cs.Allow(core.ToAgent(core.AgentID(strings.Repeat("a", i+1)))); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(cs.Report()); got != most {
		t.Errorf("circuits: got %d, want %d", got, most)
	}
}
