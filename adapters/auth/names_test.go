package auth_test

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/auth"
)

func TestAPrincipalIsNamedAsAnAgentMayBe(t *testing.T) {
	for _, name := range []string{"alice", "team/ci", "alice@example.com", "Große Anna", strings.Repeat("x", auth.MaxPrincipalBytes)} {
		if err := auth.CheckPrincipal(name); err != nil {
			t.Errorf("%q: got %v, want it allowed", name, err)
		}
	}
	for _, name := range []string{
		"", "hub", "*", "capability:x", "domain:family.calendar", "a\nb", "a\r\n", "a\x00", "a\u2028b", "a\u2029b", " a", "a ", "\xff", "a*", "role:ops", "Pack:x",
		strings.Repeat("x", auth.MaxPrincipalBytes+1),
	} {
		err := auth.CheckPrincipal(name)
		if err == nil || !strings.Contains(err.Error(), "want a name of 1 to 256 bytes") || len(name) > 3 && strings.Contains(err.Error(), name) {
			t.Errorf("%q: got %v, want it refused with what is allowed, without repeating it", name, err)
		}
	}
}

func TestNamesOfRolesAndIDsOfAgentsAreChecked(t *testing.T) {
	for _, c := range []struct {
		names         []string
		roles, agents bool
	}{
		{[]string{" dev ", "shout"}, true, true},
		{[]string{"team-*", "*", "*-ci-*"}, false, true},
		{[]string{"агент-*"}, false, true},
		{[]string{""}, false, false},
		{[]string{"a\nb"}, false, false},
		{[]string{"capability:*"}, false, false},
		{[]string{strings.Repeat("x", auth.MaxPrincipalBytes+1)}, false, false},
		{make([]string, 257), false, false},
	} {
		roles, notRoles := auth.CheckRoles(c.names)
		agents, notAgents := auth.CheckAgents(c.names)
		if (notRoles == nil) != c.roles || (notAgents == nil) != c.agents {
			t.Errorf("%q: got %v as roles and %v as agents, want them good: %v and %v", c.names, notRoles, notAgents, c.roles, c.agents)
		}
		for _, all := range [][]string{roles, agents} {
			for i := range all {
				if all[i] != strings.TrimSpace(c.names[i]) {
					t.Errorf("%q: got %q, want it without blanks", c.names[i], all[i])
				}
			}
		}
	}
}
