package command

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

func TestHalfOpenLetsNoMoreThroughThanItsTrials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCircuit("a", Breaker{Failures: 1, Window: time.Minute, Open: time.Second, Trials: 2})
		k, _ := c.Allow()
		k.End(ErrFailure)
		time.Sleep(time.Second + 1)
		first, _ := c.Allow()
		second, _ := c.Allow()
		if _, why := c.Allow(); why != "Circuit half-open, max test calls reached for a" {
			t.Errorf("third trial: got %q, want none", why)
		}
		first.End(ErrInconclusive) // it proved nothing
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

func TestCircuitsAreForgottenBeyondTheirBound(t *testing.T) {
	cs := NewAgentCircuits(Breakers{}.WithDefaults().Agent)
	for i := range maxCircuits + 10 {
		cs.circuitOf(core.AgentID(strings.Repeat("a", i+1)))
	}
	if got := cs.circuits.Len(); got != maxCircuits {
		t.Errorf("circuits: got %d, want %d", got, maxCircuits)
	}
}
