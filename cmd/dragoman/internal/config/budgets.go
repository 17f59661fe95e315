package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// Budget is a limit on the tokens, or on what they cost, of an agent, a requester or a thread: exactly one of them is
// set, to "*" for each on its own.
type Budget struct {
	Agent     string `json:"agent,omitempty"`
	Requester string `json:"requester,omitempty"`
	Thread    string `json:"thread,omitempty"`
	Tokens    int64  `json:"tokens,omitempty"`
	// Cost is in usage.currency.
	Cost float64 `json:"cost,omitempty"`
	// Per is "day" or "total"; "" means day.
	Per string `json:"per,omitempty"`
}

// limit returns the budget as the engine has it.
func (b Budget) limit(currency string) usage.Budget {
	l := usage.Budget{By: usage.ByAgent, Key: b.Agent, Tokens: b.Tokens, Per: usage.Period(cmp.Or(b.Per, string(usage.Daily)))}
	if b.Cost > 0 {
		l.Cost, _ = core.MoneyOf(b.Cost, currency) // it was checked
	}
	switch {
	case b.Requester != "":
		l.By, l.Key = usage.ByRequester, b.Requester
	case b.Thread != "":
		l.By, l.Key = usage.ByThread, b.Thread
	}
	return l
}

// String describes the budget: "agent ben: 100000 tokens a day".
func (b Budget) String() string {
	l := b.limit("")
	who, per := fmt.Sprintf("%s %s", l.By, l.Key), "a day"
	if l.Key == usage.Everybody {
		who = fmt.Sprintf("each %s", l.By)
	}
	if l.Per == usage.Ever {
		per = "in total"
	}
	if b.Cost > 0 {
		return fmt.Sprintf("%s: %v of usage.currency %s", who, b.Cost, per)
	}
	return fmt.Sprintf("%s: %d tokens %s", who, l.Tokens, per)
}

// Budgets are all budgets.
type Budgets []Budget

// String describes all budgets.
func (b Budgets) String() string { return strings.Join(each(b, Budget.String), "; ") }

// Limits returns the budgets as the engine has them, with costs in a currency.
func (b Budgets) Limits(currency string) []usage.Budget {
	var all []usage.Budget
	for _, one := range b {
		all = append(all, one.limit(currency))
	}
	return all
}

// maxTokens is the largest budget.
const maxTokens = 1_000_000_000_000_000

func (b *Budgets) read(path string, raw any, report reporter) {
	*b = readEntries[Budget](path, raw, report)
}

func (b *Budget) settings() *table {
	t := &table{}
	add(t, "agent", &b.Agent, "", "Agent id, or * for each one.").notEmpty()
	add(t, "requester", &b.Requester, "", "Requester id, or * for each one.").notEmpty()
	add(t, "thread", &b.Thread, "", "Thread id, or * for each one.").notEmpty()
	add(t, "tokens", &b.Tokens, 0, "Number of tokens that may be used: input, output and thinking.").atLeast(1).atMost(maxTokens)
	add(t, "cost", &b.Cost, 0, "Amount that may be spent, in place of tokens, in usage.currency.").amounts()
	add(t, "per", &b.Per, "", "day (UTC) or total. The default is day.").oneOf(string(usage.Daily), string(usage.Ever))
	return t
}

func (b *Budget) check(report reporter) {
	owners := slices.DeleteFunc([]string{b.Agent, b.Requester, b.Thread}, func(owner string) bool { return owner == "" })
	switch {
	case len(owners) == 0:
		report("agent", `missing; write one of agent, requester and thread, with an id or "*" for each on its own`)
	case len(owners) > 1:
		report("agent", "a budget has one of agent, requester and thread: write one for each")
	}
	switch {
	case b.Tokens == 0 && b.Cost == 0:
		report("tokens", "missing; write how many may be used, such as 100000, or as cost how much may be spent, such as 2.50")
	case b.Tokens > 0 && b.Cost > 0:
		report("cost", "a budget has one of tokens and cost: write one for each")
	}
}
