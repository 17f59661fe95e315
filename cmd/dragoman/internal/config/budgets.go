package config

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"

	"github.com/dragoman-hub/dragoman/core/usage"
)

// Budget is a limit on the tokens of an agent, a requester or a thread:
// exactly one of them is set, to "*" for each on its own.
type Budget struct {
	Agent     string `koanf:"agent" json:"agent,omitempty"`
	Requester string `koanf:"requester" json:"requester,omitempty"`
	Thread    string `koanf:"thread" json:"thread,omitempty"`
	Tokens    int64  `koanf:"tokens" json:"tokens"`
	// Per is "day", which "" is too, or "total".
	Per string `koanf:"per" json:"per,omitempty"`
}

// limit is the limit in the words of the engine.
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

// String says the limit in words.
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

// Budgets are the limits on what may be spent.
type Budgets []Budget

// String says every limit in words.
func (b Budgets) String() string {
	var all []string
	for _, one := range b {
		all = append(all, one.String())
	}
	return strings.Join(all, "; ")
}

// Limits are the limits in the words of the engine.
func (b Budgets) Limits() []usage.Budget {
	var all []usage.Budget
	for _, one := range b {
		all = append(all, one.limit())
	}
	return all
}

// budgetsWanted says what the setting allows.
const budgetsWanted = `a list such as [{agent: ben, tokens: 100000, per: day}]: each with one of agent, requester and thread ("*" for each on its own), tokens, and per (day or total)`

// readBudgets reads a list, or text that is one in YAML. What stands in it the schema
// judges.
func readBudgets(raw any) (list []any, ok bool) {
	if text, is := raw.(string); is {
		m, err := yaml.Parser().Unmarshal([]byte("budgets: " + text))
		if err != nil || len(m) != 1 {
			return nil, false
		}
		if raw = m["budgets"]; raw == nil {
			return []any{}, true
		}
	}
	list, ok = raw.([]any)
	return list, ok
}
