package config

import (
	"cmp"
	"fmt"
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
func (b Budgets) String() string {
	var all []string
	for _, one := range b {
		all = append(all, one.String())
	}
	return strings.Join(all, "; ")
}

// Limits returns the budgets as the engine has them.
func (b Budgets) Limits() []usage.Budget {
	var all []usage.Budget
	for _, one := range b {
		all = append(all, one.limit())
	}
	return all
}

// budgetsWanted describes the values that the setting accepts.
const budgetsWanted = `a list such as [{agent: ben, tokens: 100000, per: day}]: each with one of agent, requester and thread ("*" for each on its own), tokens, and per (day or total)`

// maxTokens is the largest budget.
const maxTokens = 1_000_000_000_000_000

// readBudgets reads a list of budgets, or YAML text with one.
func readBudgets(raw any) (Budgets, bool) {
	if text, is := raw.(string); is {
		m, err := ReadYAML([]byte("budgets: " + text))
		if err != nil || len(m) != 1 {
			return nil, false
		}
		if raw = m["budgets"]; raw == nil {
			return nil, true
		}
	}
	list, ok := raw.([]any)
	if !ok {
		return nil, false
	}
	var all Budgets
	for _, item := range list {
		one, ok := readBudget(item)
		if !ok {
			return nil, false
		}
		all = append(all, one)
	}
	return all, true
}

// readBudget reads one budget.
func readBudget(item any) (b Budget, ok bool) {
	m, ok := item.(map[string]any)
	owners := 0
	for key, value := range m {
		text, isText := value.(string)
		switch key {
		case "agent", "requester", "thread":
			*map[string]*string{"agent": &b.Agent, "requester": &b.Requester, "thread": &b.Thread}[key] = text
			owners++
			ok = ok && text != ""
		case "tokens":
			var whole bool
			b.Tokens, whole = wholeNumber(value)
			ok = ok && whole && !isText
		case "per":
			b.Per = text
			ok = ok && (text == string(usage.Daily) || text == string(usage.Ever))
		default:
			ok = false
		}
	}
	return b, ok && owners == 1 && 1 <= b.Tokens && b.Tokens <= maxTokens
}
