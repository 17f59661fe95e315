package usage

import (
	"math/bits"

	"github.com/dragoman-hub/dragoman/core"
)

// DefaultCurrency is that of prices that name none.
const DefaultCurrency = "USD"

// Price is what a million tokens of a model cost, in billionths of a currency, each from 0 to [core.MaxNanos]. Tokens
// that are written to a cache cost as others of the input, and those of thinking as the output.
type Price struct{ Input, Cached, Output int64 }

// Prices are the prices of models by their names as agents tell them, in one currency.
type Prices struct {
	Currency string
	Models   map[string]Price
}

// Priced returns usage with its cost: what its agent says, if that is in the currency of the prices, else by the price
// of its model. Without one the cost is unknown. A name of a model that is too long is left out.
func (p Prices) Priced(u core.Usage) core.Usage {
	if len(u.Model) > core.MaxModel {
		u.Model = ""
	}
	if c := u.Cost; c.Currency == p.Currency && 0 <= c.Nanos && c.Nanos <= core.MaxNanos {
		return u
	}
	u.Cost = core.Money{}
	if price, known := p.Models[u.Model]; known && u.Model != "" {
		u.Cost = core.Money{Nanos: price.of(u), Currency: p.Currency}
	}
	return u
}

// of returns the cost of usage, rounded to the nearest billionth.
func (p Price) of(u core.Usage) int64 {
	const perTokens = 1_000_000
	var high, low uint64
	add := func(tokens, price int64) {
		h, l := bits.Mul64(uint64(min(max(0, tokens), 1<<40)), uint64(price))
		var carry uint64
		low, carry = bits.Add64(low, l, 0)
		high, _ = bits.Add64(high, h, carry)
	}
	add(u.Input, p.Input)
	add(u.CacheWrite, p.Input)
	add(u.CacheRead, p.Cached)
	add(u.Output, p.Output)
	add(u.Thinking, p.Output)
	var carry uint64
	low, carry = bits.Add64(low, perTokens/2, 0)
	if high += carry; high >= perTokens {
		return core.MaxNanos
	}
	cost, _ := bits.Div64(high, low, perTokens)
	return int64(min(cost, core.MaxNanos))
}
