package core_test

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
)

func TestWhoAnswersForAnAddressAndHowWell(t *testing.T) {
	card := core.Card{
		ID: "ben", Capabilities: []string{"write", "test"},
		Domains: []string{"family", "family.calendar", "work.*", "sch.ool"},
	}
	type answer struct {
		score int
		ok    bool
	}
	for name, c := range map[string]struct {
		to   core.Address
		want answer
	}{
		"nobody":                              {core.Address{}, answer{0, false}},
		"its id":                              {core.ToAgent("ben"), answer{0, true}},
		"another id":                          {core.ToAgent("Ben"), answer{0, false}},
		"whoever is free":                     {core.ToAny(), answer{0, true}},
		"the hub":                             {core.ToHub(), answer{0, false}},
		"a capability":                        {core.ToCapability("write"), answer{0, true}},
		"all its capabilities in disorder":    {core.ToCapability("test", "write"), answer{0, true}},
		"one capability too many":             {core.ToCapability("write", "fly"), answer{0, false}},
		"a part of a capability":              {core.ToCapability("writ"), answer{0, false}},
		"a capability in other letters":       {core.ToCapability("Write"), answer{0, false}},
		"a domain":                            {core.ToDomain("family"), answer{6, true}},
		"below a domain":                      {core.ToDomain("family.school"), answer{6, true}},
		"the longest of two domains":          {core.ToDomain("family.calendar"), answer{15, true}},
		"far below the longest of two":        {core.ToDomain("family.calendar.today.noon"), answer{15, true}},
		"a longer word":                       {core.ToDomain("familyaffairs"), answer{0, false}},
		"a longer word further down":          {core.ToDomain("family.calendars"), answer{6, true}},
		"above a domain":                      {core.ToDomain("sch"), answer{0, false}},
		"below a domain with a star":          {core.ToDomain("work.mail"), answer{4, true}},
		"a domain with a star itself":         {core.ToDomain("work"), answer{4, true}},
		"a longer word at one with a star":    {core.ToDomain("works"), answer{0, false}},
		"a dot of a domain matches no letter": {core.ToDomain("sch-ool"), answer{0, false}},
		"no domain":                           {core.ToDomain("home"), answer{0, false}},
	} {
		score, ok := card.Answers(c.to)
		if got := (answer{score, ok}); got != c.want {
			t.Errorf("%s (%s): got %+v, want %+v", name, c.to, got, c.want)
		}
	}
}

func TestAnEmptyRequirementIsMetByNobody(t *testing.T) {
	card := core.Card{ID: "ben", Capabilities: []string{"write"}, Domains: []string{"family"}}
	for _, to := range []core.Address{core.ToCapability(), core.ToCapability(""), core.ToDomain("")} {
		if _, ok := card.Answers(to); ok {
			t.Errorf("%q: got an answer, want none", to)
		}
	}
}

func TestEveryDeclaredPrefixOfADomainAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringMatching(`[a-z]{1,4}`)
		domain := ""
		want := map[string]int{}
		for i, p := range rapid.SliceOfN(part, 1, 5).Draw(t, "parts") {
			if i > 0 {
				domain += "."
			}
			domain += p
			want[domain] = len(domain)
		}
		declared := rapid.SampledFrom(slices.Sorted(func(yield func(string) bool) {
			for d := range want {
				if !yield(d) {
					return
				}
			}
		})).Draw(t, "declared")
		score, ok := core.Card{Domains: []string{declared}}.Answers(core.ToDomain(domain))
		if !ok || score != want[declared] {
			t.Fatalf("%s for %s: got %d and %v, want %d", declared, domain, score, ok, want[declared])
		}
	})
}

func TestFeaturesAreTheirNamesInJSON(t *testing.T) {
	for f, want := range map[core.Features]string{
		0:                        `[]`,
		core.FeatureStreaming:    `["streaming"]`,
		core.FeatureUsage:        `["usage"]`,
		core.FeatureToolStates:   `["tool_states"]`,
		core.FeatureInjection:    `["injection"]`,
		core.FeatureCancellation: `["cancellation"]`,
		core.FeatureApprovals:    `["approvals"]`,
		core.FeatureNotices:      `["notices"]`,
		core.FeatureSessions:     `["sessions"]`,
		core.FeatureFiles:        `["files"]`,
		core.FeatureFiles | core.FeatureStreaming: `["streaming","files"]`,
	} {
		text, err := json.Marshal(f)
		if err != nil || string(text) != want {
			t.Errorf("got %s and %v, want %s", text, err, want)
		}
		got := core.FeatureUsage // what stood there goes
		if err := json.Unmarshal([]byte(want), &got); err != nil || got != f {
			t.Errorf("%s: got %v and %v, want %v", want, got.Names(), err, f.Names())
		}
	}
	var f core.Features
	if err := json.Unmarshal([]byte(`["files","telepathy","Usage"]`), &f); err != nil || f != core.FeatureFiles {
		t.Errorf("unknown names: got %v and %v, want them ignored", f.Names(), err)
	}
	if err := json.Unmarshal([]byte(`{"files":true}`), &f); err == nil {
		t.Error("an object: got no error, want one")
	}
}

func TestASetOfFeaturesHasWhatIsInIt(t *testing.T) {
	f := core.FeatureStreaming | core.FeatureFiles
	for g, want := range map[core.Features]bool{
		0: true, core.FeatureFiles: true, f: true, core.FeatureUsage: false, core.FeatureFiles | core.FeatureUsage: false,
	} {
		if got := f.Has(g); got != want {
			t.Errorf("%v has %v: got %v, want %v", f.Names(), g.Names(), got, want)
		}
	}
}
