package client

import (
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// cost is what a session has cost. Its agent tells the sum of all turns (usage_update), each turn counts what was added.
type cost struct {
	told    core.Money // since the last turn; unknown if nothing was
	counted core.Money // of the turns before
}

// tell takes what the agent says, an amount and its currency. Anything else is no cost.
func (c *cost) tell(v strictjson.Value) {
	var said struct {
		Amount   float64 `json:"amount"`
		Currency string  `json:"currency"`
	}
	if v.Kind() != strictjson.Object || v.Decode(&said) != nil {
		return
	}
	if m, ok := core.MoneyOf(said.Amount, said.Currency); ok {
		c.told = m
	}
}

// take returns what was added since the last call; unknown if the agent has told no sum since then. A sum that is less
// than before, or in another currency, has started again from zero.
func (c *cost) take() (added core.Money) {
	if !c.told.Known() {
		return added
	}
	added = c.told
	if added.Currency == c.counted.Currency && added.Nanos >= c.counted.Nanos {
		added.Nanos -= c.counted.Nanos
	}
	c.told, c.counted = core.Money{}, c.told
	return added
}
