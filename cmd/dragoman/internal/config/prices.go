package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// Price is what a million tokens of a model cost, in usage.currency.
type Price struct {
	Model  string  `json:"model"`
	Input  float64 `json:"input"`
	Cached float64 `json:"cached"`
	Output float64 `json:"output"`
}

// Prices are those of all models.
type Prices []Price

// String describes all prices.
func (p Prices) String() string {
	return strings.Join(each(p, func(one Price) string {
		return fmt.Sprintf("%s: input %v, cached %v, output %v", one.Model, one.Input, one.Cached, one.Output)
	}), "; ")
}

// In returns the prices as the engine has them, in a currency.
func (p Prices) In(currency string) usage.Prices {
	all := usage.Prices{Currency: currency, Models: map[string]usage.Price{}}
	nanos := func(amount float64) int64 {
		m, _ := core.MoneyOf(amount, currency) // it was checked
		return m.Nanos
	}
	for _, one := range p {
		all.Models[one.Model] = usage.Price{Input: nanos(one.Input), Cached: nanos(one.Cached), Output: nanos(one.Output)}
	}
	return all
}

func (p *Prices) read(path string, raw any, report reporter) {
	*p = readEntries[Price](path, raw, report)
	for i, one := range *p {
		if first := slices.IndexFunc(*p, func(o Price) bool { return o.Model == one.Model }); first < i && one.Model != "" {
			report(fmt.Sprintf("%s[%d].model", path, i), fmt.Sprintf("%q has a price in %s[%d] too: leave one out", one.Model, path, first))
		}
	}
}

func (p *Price) settings() *table {
	t := &table{}
	add(t, "model", &p.Model, "", "Name of the model, as agents tell it.").notEmpty()
	add(t, "input", &p.Input, 0, "Price of a million tokens of input, those written to a cache included.").amounts()
	add(t, "cached", &p.Cached, 0, "Price of a million tokens read from a cache.").amounts()
	add(t, "output", &p.Output, 0, "Price of a million tokens of output, thinking included.").amounts()
	return t
}

func (p *Price) check(report reporter) {
	switch {
	case p.Model == "":
		report("model", "missing; write the name of the model, as 'dragoman tail' shows it with usage")
	case len(p.Model) > core.MaxModel:
		report("model", fmt.Sprintf("want at most %d bytes", core.MaxModel))
	}
}
