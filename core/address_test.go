package core_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
)

func TestAnAddressReadsBackFromItsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := coretest.Addresses().Draw(t, "address")
		got, err := core.ParseAddress(want.String())
		if err != nil || got != want {
			t.Fatalf("%q: got %+v and %v, want %+v", want, got, err, want)
		}
	})
}

func TestWhateverReadsAsAnAddressIsWrittenInOneWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix := rapid.SampledFrom([]string{"", "capability:", "domain:", "*", "hub"}).Draw(t, "prefix")
		a, err := core.ParseAddress(prefix + rapid.String().Draw(t, "text"))
		if err != nil {
			return
		}
		if got, err := core.ParseAddress(a.String()); err != nil || got != a {
			t.Fatalf("%q: got %+v and %v, want %+v", a, got, err, a)
		}
	})
}

func TestAnAddressNamesOneThing(t *testing.T) {
	type parts struct {
		reach        core.Reach
		agent        core.AgentID
		agents       []core.AgentID
		capabilities []string
		domain       string
	}
	for text, want := range map[string]parts{
		"":                       {},
		"ben":                    {reach: core.ReachAgent, agent: "ben", agents: []core.AgentID{"ben"}},
		"Ben the 2nd: writer":    {reach: core.ReachAgent, agent: "Ben the 2nd: writer", agents: []core.AgentID{"Ben the 2nd: writer"}},
		"*":                      {reach: core.ReachAny},
		"hub":                    {reach: core.ReachHub},
		"claude,codex, Ben":      {reach: core.ReachPreference, agents: []core.AgentID{"claude", "codex", "Ben"}},
		"capability:write":       {reach: core.ReachCapability, capabilities: []string{"write"}},
		"capability:write, test": {reach: core.ReachCapability, capabilities: []string{"write", "test"}},
		"domain:family.calendar": {reach: core.ReachDomain, domain: "family.calendar"},
		"domain:family":          {reach: core.ReachDomain, domain: "family"},
	} {
		a, err := core.ParseAddress(text)
		if err != nil {
			t.Errorf("%q: got %v, want no error", text, err)
			continue
		}
		if got := (parts{a.Reach(), a.Agent(), slices.Collect(a.Agents()), a.Capabilities(), a.Domain()}); got.reach != want.reach || got.agent != want.agent ||
			got.domain != want.domain || !slices.Equal(got.agents, want.agents) || !slices.Equal(got.capabilities, want.capabilities) {
			t.Errorf("%q: got %+v, want %+v", text, got, want)
		}
		if got, want := a.IsZero(), text == ""; got != want {
			t.Errorf("%q is unset: got %v, want %v", text, got, want)
		}
	}
}

func TestAnAddressThatCannotBeReadSaysWhatToChange(t *testing.T) {
	for text, says := range map[string]string{
		"capability:":                            "write capability:a or capability:a,b",
		"capability:a,":                          "write capability:a or capability:a,b",
		"capability:a,,b":                        "a capability is missing",
		"capability: ":                           "a capability is missing",
		"a,":                                     "the agent id is empty: choose one; write agent ids with commas between them",
		"a,hub":                                  "reserved for addresses",
		"a,b,a":                                  "names a twice: each agent is asked once",
		"domain:":                                "write domain:family.calendar",
		"domain:a..b":                            "a part of the domain is empty",
		"domain:.a":                              "a part of the domain is empty",
		"domain:a.":                              "a part of the domain is empty",
		" ben":                                   "begins or ends with blanks: remove them",
		"ben\n":                                  "control characters: remove them",
		"be\xffn":                                "not UTF-8",
		"domain:be\xffn":                         "not UTF-8",
		"capability:write\n":                     "control characters: remove them",
		"domain:" + strings.Repeat("long", 1024): "has 4103 bytes: use at most 4096",
		strings.Repeat("long", 129):              "has 516 bytes: use at most 512",
	} {
		a, err := core.ParseAddress(text)
		if !errors.Is(err, &core.Fault{Code: core.CodeInvalid}) {
			t.Errorf("%q: got %+v and %v, want an invalid fault", text, a, err)
			continue
		}
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %q, want %q in it", text, err, says)
		}
		if !a.IsZero() {
			t.Errorf("%q: got %+v beside the error, want it unset", text, a)
		}
	}
}

func TestAnAddressIsItsTextInJSON(t *testing.T) {
	type message struct {
		To core.Address `json:"to"`
	}
	want := message{core.ToCapability("write", "test")}
	text, err := json.Marshal(want)
	if err != nil || string(text) != `{"to":"capability:write,test"}` {
		t.Fatalf("got %s and %v, want the text form", text, err)
	}
	var got message
	if err := json.Unmarshal(text, &got); err != nil || got != want {
		t.Errorf("got %+v and %v, want %+v", got, err, want)
	}
	if err := json.Unmarshal([]byte(`{"to":"domain:"}`), &got); !errors.Is(err, &core.Fault{Code: core.CodeInvalid}) {
		t.Errorf("a bad address: got %v, want an invalid fault", err)
	}
	if got != want {
		t.Errorf("beside the error: got %+v, want it untouched", got)
	}
}

func TestAnAgentIDMayBeAnyNameThatIsNoOtherAddress(t *testing.T) {
	for _, id := range []core.AgentID{"a", "ben", "6f1c…", "agent with blanks", "a:b", "domains", "@room:server", "日本語のbot", "Привет 2", "한글-봇", "naïve", "🤖", core.AgentID(strings.Repeat("x", 512))} {
		if err := core.CheckAgentID(id); err != nil {
			t.Errorf("%q: got %v, want no error", id, err)
		}
		if a, err := core.ParseAddress(string(id)); err != nil || a.Agent() != id {
			t.Errorf("as an address: got %q and %v, want %q", a.Agent(), err, id)
		}
	}
	for id, says := range map[core.AgentID]string{
		"":                                     "is empty: choose one",
		"a,b":                                  "a comma, which separates the ids of an address",
		"Hub":                                  "is reserved for addresses",
		"Capability:x":                         "is reserved for addresses",
		"sh\u200bout":                          "characters that cannot be seen: remove them",
		"\u202eshout":                          "characters that cannot be seen: remove them",
		"shout\ufe0f":                          "characters that cannot be seen: remove them",
		"sh\u3164out":                          "characters that cannot be seen: remove them",
		"shоut":                                "letters of several scripts", // the o is Cyrillic
		"Αlice":                                "letters of several scripts", // the A is Greek
		"ひらがな한글":                               "letters of several scripts",
		"cafe\u0301":                           "is not in Unicode's normal form C: send caf\u00e9",
		core.AgentID(strings.Repeat("x", 513)): "has 513 bytes: use at most 512",
		"a\x00b":                               "control characters: remove them",
		"a\u0085b":                             "control characters: remove them",
		"a\nb":                                 "control characters: remove them",
		"a\u2028b":                             "control characters: remove them",
		"\xff":                                 "not UTF-8",
		"a ":                                   "blanks: remove them",
		"\u00a0a":                              "blanks: remove them",
		"*":                                    "reserved for addresses: choose another",
		"hub":                                  "reserved for addresses: choose another",
		"capability:x":                         "reserved for addresses: choose another",
		"domain:":                              "reserved for addresses: choose another",
	} {
		err := core.CheckAgentID(id)
		if !errors.Is(err, &core.Fault{Code: core.CodeInvalid}) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v, want an invalid fault with %q in it", id, err, says)
		}
	}
}

func TestFreshIDsDifferAndSortByTime(t *testing.T) {
	last := ""
	for range 1000 {
		id := core.NewID()
		if id <= last {
			t.Fatalf("got %s behind %s, want it to sort behind", id, last)
		}
		last = id
	}
}
