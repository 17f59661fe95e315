package usage_test

import (
	"math"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/usage"
)

var prices = usage.Prices{Currency: "USD", Models: map[string]usage.Price{
	"big":  {Input: 3e9, Cached: 300e6, Output: 15e9},
	"dear": {Input: core.MaxNanos, Output: core.MaxNanos},
}}

func usd(nanos int64) core.Money { return core.Money{Nanos: nanos, Currency: "USD"} }

func TestUsageIsPricedByItsAgentElseByItsModel(t *testing.T) {
	long := strings.Repeat("x", core.MaxModel+1)
	for name, tt := range map[string]struct {
		told core.Usage
		want core.Money
	}{
		"a model with a price":              {core.Usage{Model: "big", Input: 1000, CacheWrite: 100, CacheRead: 10_000, Output: 20, Thinking: 30}, usd(3_300_000 + 3_000_000 + 750_000)},
		"less than a billionth is rounded":  {core.Usage{Model: "big", CacheRead: 1}, usd(300)},
		"the agent tells its cost":          {core.Usage{Model: "big", Input: 1000, Cost: usd(7)}, usd(7)},
		"the agent tells that it is free":   {core.Usage{Model: "big", Input: 1000, Cost: usd(0)}, usd(0)},
		"it tells another currency":         {core.Usage{Model: "big", Input: 1000, Cost: core.Money{Nanos: 7, Currency: "EUR"}}, usd(3_000_000)},
		"it tells less than nothing":        {core.Usage{Model: "big", Input: 1000, Cost: usd(-7)}, usd(3_000_000)},
		"it tells too much":                 {core.Usage{Input: 1000, Cost: usd(core.MaxNanos + 1)}, core.Money{}},
		"a model without a price":           {core.Usage{Model: "small", Input: 1000}, core.Money{}},
		"no model":                          {core.Usage{Input: 1000}, core.Money{}},
		"a name that is too long":           {core.Usage{Model: long, Input: 1000}, core.Money{}},
		"more than fits":                    {core.Usage{Model: "dear", Input: math.MaxInt64, Output: math.MaxInt64, Thinking: math.MaxInt64}, usd(core.MaxNanos)},
		"tokens that are less than nothing": {core.Usage{Model: "big", Input: -5, Output: 1}, usd(15_000)},
	} {
		got := prices.Priced(tt.told)
		if got.Cost != tt.want || got.Input != tt.told.Input {
			t.Errorf("%s: got %v, want %v and the tokens", name, got.Cost, tt.want)
		}
		if len(got.Model) > core.MaxModel {
			t.Errorf("%s: got a name of %d bytes, want none", name, len(got.Model))
		}
	}
}

func TestWhatIsUnpricedIsCountedAsThat(t *testing.T) {
	l := usage.NewLedger()
	for _, cost := range []core.Money{usd(5), {}, usd(0)} {
		r := spent(1, noon)
		r.Cost = cost
		l.Add(r)
	}
	totals, err := l.Totals(usage.ByAgent)
	if want := (usage.Total{Key: "ben", Tokens: core.Usage{Input: 3}, Events: 3, Unpriced: 1, Cost: usd(5)}); err != nil || len(totals) != 1 || totals[0] != want {
		t.Errorf("got %+v and %v, want %+v", totals, err, want)
	}
	if sum := l.Total(); sum.Cost != usd(5) || sum.Events != 3 || sum.Unpriced != 1 {
		t.Errorf("in all: got %+v, want 5 billionths, and one of three unpriced", sum)
	}
	elsewhere := []usage.Total{{Key: "ben", Events: 2, Cost: core.Money{Nanos: 9, Currency: "EUR"}}}
	if sum := usage.Sum(totals, elsewhere); len(sum) != 1 || sum[0].Cost != usd(5) || sum[0].Unpriced != 3 {
		t.Errorf("with a hub of another currency: got %+v, want what it counted unpriced", sum)
	}
}

func TestABudgetMayBeInMoney(t *testing.T) {
	b := usage.NewBudgets([]usage.Budget{
		{By: usage.ByAgent, Key: "ben", Cost: usd(2_500_000_000), Per: usage.Daily},
		{By: usage.ByAgent, Key: "ben", Tokens: 1000, Per: usage.Daily},
	})
	r := spent(1, noon)
	r.Cost = usd(2_000_000_000)
	near := b.Add(r)
	if len(near) != 1 || !near[0].Crossed() || near[0].Percent() != 80 || !strings.Contains(near[0].Warning(), `80% consumed. 0.50 USD remaining. (agent "ben" may use 2.50 USD a day`) {
		t.Fatalf("at 2 of 2.50 USD: got %+v, want a warning", near)
	}
	r.Cost = core.Money{}
	b.Add(r) // nobody knows what it cost
	allowed(t, b, usage.ByAgent, "ben", noon)
	r.Cost = core.Money{Nanos: 9e9, Currency: "EUR"}
	b.Add(r)
	allowed(t, b, usage.ByAgent, "ben", noon)
	r.Cost = usd(500_000_000)
	b.Add(r)
	refused(t, b, usage.ByAgent, "ben", noon, "used up, with 2.50 USD", "may use 2.50 USD a day")

	other := usage.NewBudgets([]usage.Budget{ // of a hub that is told what this one has used
		{By: usage.ByAgent, Key: "ben", Tokens: 1000, Per: usage.Daily},
		{By: usage.ByAgent, Key: "ben", Cost: usd(2_500_000_000), Per: usage.Daily},
	})
	other.Raise(1, b.Accounts())
	for _, st := range other.Status(noon) {
		if want := map[bool]int64{false: 4, true: 2_500_000_000}[st.Cost.Known()]; st.Used != want {
			t.Errorf("%+v: got %d used, want %d", st.Budget, st.Used, want)
		}
	}
}
