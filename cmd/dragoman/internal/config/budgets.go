package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/core/usage"
)

// Budget is a limit on the tokens of an agent, a requester or a thread:
// exactly one of them is set, to "*" for each on its own.
type Budget struct {
	Agent     string `json:"agent,omitempty"`
	Requester string `json:"requester,omitempty"`
	Thread    string `json:"thread,omitempty"`
	Tokens    int64  `json:"tokens"`
	// Per is "day" or "total"; "" means day.
	Per string `json:"per,omitempty"`
}

// limit returns the budget as the engine has it.
func (b Budget) limit() usage.Budget {
	l := usage.Budget{By: usage.ByAgent, Key: b.Agent, Tokens: b.Tokens, Per: usage.Period(cmp.Or(b.Per, string(usage.Daily)))}
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
	l := b.limit()
	who, per := fmt.Sprintf("%s %s", l.By, l.Key), "a day"
	if l.Key == usage.Everybody {
		who = fmt.Sprintf("each %s", l.By)
	}
	if l.Per == usage.Ever {
		per = "in total"
	}
	return fmt.Sprintf("%s: %d tokens %s", who, l.Tokens, per)
}

// Budgets are all budgets.
type Budgets []Budget

// String describes all budgets.
func (b Budgets) String() string { return strings.Join(each(b, Budget.String), "; ") }

// Limits returns the budgets as the engine has them.
func (b Budgets) Limits() []usage.Budget {
	var all []usage.Budget
	for _, one := range b {
		all = append(all, one.limit())
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
	if b.Tokens == 0 {
		report("tokens", "missing; write how many may be used, such as 100000")
	}
}
