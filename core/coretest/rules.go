package coretest

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core/policy"
)

// Rules returns a table of rules, each as "WHO RIGHT[,RIGHT...] [TO]": "ada see,ask coder". A rule
// without TO holds everywhere.
func Rules(t testing.TB, rules ...string) *policy.Table {
	t.Helper()
	var all []policy.Rule
	for i, text := range rules {
		words := strings.Fields(text)
		if len(words) < 2 {
			t.Fatalf("rule %q: want WHO RIGHTS [TO]", text)
		}
		r := policy.Rule{Who: words[:1], To: words[2:], Line: i + 1}
		for _, name := range strings.Split(words[1], ",") {
			right, err := policy.ParseRight(name)
			if err != nil {
				t.Fatalf("rule %q: %v", text, err)
			}
			r.May = append(r.May, right)
		}
		all = append(all, r)
	}
	table, err := policy.Compile(all)
	if err != nil {
		t.Fatal(err)
	}
	return table
}
