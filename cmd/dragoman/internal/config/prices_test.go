package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/usage"
)

func TestPricesAndBudgetsInMoneyAreReadExactly(t *testing.T) {
	c, err := configOf(t, "usage: {currency: EUR, prices: [{model: big, input: 3, cached: 0.3, output: 15.05}]}\nbudgets: [{agent: ben, cost: 2.50}]\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := usage.Prices{Currency: "EUR", Models: map[string]usage.Price{"big": {Input: 3_000_000_000, Cached: 300_000_000, Output: 15_050_000_000}}}
	if d := cmp.Diff(want, c.Usage.Prices.In(c.Usage.Currency)); d != "" {
		t.Errorf("prices (-want +got):\n%s", d)
	}
	limits := []usage.Budget{{By: usage.ByAgent, Key: "ben", Cost: core.Money{Nanos: 2_500_000_000, Currency: "EUR"}, Per: usage.Daily}}
	if d := cmp.Diff(limits, c.Budgets.Limits(c.Usage.Currency)); d != "" {
		t.Errorf("budgets (-want +got):\n%s", d)
	}
}

func TestAnInvalidPriceIsRefusedWithWhatToWrite(t *testing.T) {
	for text, want := range map[string]string{
		"prices: [{input: 1}]":                                "usage.prices[0].model: missing; write the name of the model",
		"prices: [{model: a, input: -1}]":                     "usage.prices[0].input: want an amount such as 2.50, at most a million, got -1",
		"prices: [{model: a, output: 2000000}]":               "usage.prices[0].output: want an amount",
		"prices: [{model: a, outptu: 2}]":                     "usage.prices[0].outptu: unknown: did you mean output?",
		"prices: [{model: a}, {model: b}, {model: a}]":        `usage.prices[2].model: "a" has a price in usage.prices[0] too: leave one out`,
		"prices: [{model: " + strings.Repeat("a", 200) + "}]": "usage.prices[0].model: want at most 128 bytes",
		"currency: usd":                                       "usage.currency: want three capital letters, such as EUR",
	} {
		if _, err := configOf(t, "usage: {"+text+"}\n", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
