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
		if d := cmp.Diff(want, c.Budgets.Limits()); err != nil || d != "" {
			t.Errorf("%s: got %v and (-want +got):\n%s", name, err, d)
		}
	}
	for name, environ := range map[string][]string{"nothing": nil, "an empty text": {"DRAGOMAN_BUDGETS="}, "an empty list": {"DRAGOMAN_BUDGETS=[]"}} {
		if c, err := configOf(t, "", environ); err != nil || len(c.Budgets) != 0 {
			t.Errorf("%s: got %v and %v, want no budgets", name, c.Budgets, err)
		}
	}
}

func TestAnInvalidBudgetIsRefusedWithTheAllowedForm(t *testing.T) {
	for _, list := range []string{
		"ben", "[ben]", "[{agent: ben}]", "[{tokens: 1}]", "[{agent: ben, requester: ana, tokens: 1}]", "[{agent: '', tokens: 1}]",
		"[{agent: ben, tokens: 0}]", "[{agent: ben, tokens: -1}]", "[{agent: ben, tokens: 1.5}]", "[{agent: ben, tokens: many}]",
		"[{agent: ben, tokens: 1e300}]", "[{agent: ben, tokens: .inf}]", "[{agent: ben, tokens: 1, per: week}]", "[{agent: ben, tokens: 1, of: day}]",
		"[{agent: [ben], tokens: 1}]", "[{1: ben}]", "3",
	} {
		for _, load := range []func() (config.Config, error){
			func() (config.Config, error) { return configOf(t, "budgets: "+list, nil) },
			func() (config.Config, error) { return configOf(t, "", []string{"DRAGOMAN_BUDGETS=" + list}) },
		} {
			c, err := load()
			if err == nil || !strings.Contains(err.Error(), "want a list such as [{agent: ben, tokens: 100000, per: day}]") {
				t.Errorf("%s: got %+v and %v, want it refused with what is allowed", list, c.Budgets, err)
			}
		}
	}
}
