package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core/usage"
)

func TestBudgetsAreReadFromTheFileAndTheEnvironment(t *testing.T) {
	want := []usage.Budget{
		{By: usage.ByAgent, Key: "ben", Tokens: 100_000, Per: usage.Daily},
		{By: usage.ByRequester, Key: "*", Tokens: 5, Per: usage.Ever},
		{By: usage.ByThread, Key: "th", Tokens: 1_000_000, Per: usage.Daily},
	}
	const list = "[{agent: ben, tokens: 100000, per: day}, {requester: '*', tokens: 5, per: total}, {thread: th, tokens: 1e6}]"
	for name, load := range map[string]func() (config.Config, error){
		"the file": func() (config.Config, error) { return configOf(t, "budgets: "+list, nil) },
		"the environment": func() (config.Config, error) {
			return configOf(t, "budgets: [{agent: x, tokens: 1}]", []string{"DRAGOMAN_BUDGETS=" + list})
		},
	} {
		c, err := load()
		if d := cmp.Diff(want, c.Budgets.Limits("USD")); err != nil || d != "" {
			t.Errorf("%s: got %v and (-want +got):\n%s", name, err, d)
		}
	}
	for name, environ := range map[string][]string{"nothing": nil, "an empty text": {"DRAGOMAN_BUDGETS="}, "an empty list": {"DRAGOMAN_BUDGETS=[]"}} {
		if c, err := configOf(t, "", environ); err != nil || len(c.Budgets) != 0 {
			t.Errorf("%s: got %v and %v, want no budgets", name, c.Budgets, err)
		}
	}
}

func TestAnInvalidBudgetIsRefusedWithWhatToWrite(t *testing.T) {
	const tokens = "[0].tokens: want a whole number of at least 1 and at most 1000000000000000, got "
	for list, want := range map[string]string{
		"ben":                                       `: want a list of objects, got "ben"`,
		"3":                                         ": want a list of objects, got ",
		"{agent: ben, tokens: 1}":                   ": want a list of objects, got an object: put a dash before each entry",
		"[ben]":                                     `[0]: want an object such as {agent: ...}, got "ben"`,
		"[{agent: ben}]":                            "[0].tokens: missing; write how many may be used",
		"[{tokens: 1}]":                             "[0].agent: missing; write one of agent, requester and thread",
		"[{agent: '', tokens: 1}]":                  `[0].agent: want text that is not empty, got ""`,
		"[{agent: [ben], tokens: 1}]":               "[0].agent: want text that is not empty, got a list",
		"[{agent: ben, tokens: 0}]":                 tokens + "0",
		"[{agent: ben, tokens: -1}]":                tokens + "-1",
		"[{agent: ben, tokens: 1.5}]":               tokens + "1.5",
		"[{agent: ben, tokens: many}]":              tokens + `"many"`,
		"[{agent: ben, tokens: 1e300}]":             tokens + "1e+300",
		"[{agent: ben, tokens: .inf}]":              tokens + "+Inf",
		"[{agent: ben, tokens: 1, per: week}]":      `[0].per: want day or total, got "week"`,
		"[{agent: ben, tokens: 1, of: day}]":        "[0].of: unknown: use agent, requester, thread, tokens, cost, per",
		"[{agent: ben, tokens: 1, cost: 1}]":        "[0].cost: a budget has one of tokens and cost",
		"[{agent: ben, cost: -1}]":                  "[0].cost: want an amount such as 2.50, at most a million, got -1",
		"[{agent: ben, token: 1}]":                  "[0].token: unknown: did you mean tokens?",
		"[{1: ben}]":                                "[0].1: unknown",
		"[{agent: ben, requester: ana, tokens: 1}]": "[0].agent: a budget has one of agent, requester and thread",
		"[{agent: a, tokens: 1}, {agent: b}]":       "[1].tokens: missing",
	} {
		for _, load := range []func() (config.Config, error){
			func() (config.Config, error) { return configOf(t, "budgets: "+list, nil) },
			func() (config.Config, error) { return configOf(t, "", []string{"DRAGOMAN_BUDGETS=" + list}) },
		} {
			if _, err := load(); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "DRAGOMAN_BUDGETS", "budgets"), "budgets"+want) {
				t.Errorf("%s: got %v, want it refused with budgets%s", list, err, want)
			}
		}
	}
}
