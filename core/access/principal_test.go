package access_test

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core/access"
)

func TestAPrincipalIsNamedAsAnAgentMayBe(t *testing.T) {
	for _, name := range []string{"alice", "team/ci", "alice@example.com", "Große Anna", strings.Repeat("x", access.MaxPrincipalBytes)} {
		if err := access.CheckPrincipal(name); err != nil {
			t.Errorf("%q: got %v, want it allowed", name, err)
		}
	}
	for _, name := range []string{
		"", "hub", "*", "capability:x", "domain:family.calendar", "a\nb", "a\r\n", "a\x00", "a\u2028b", "a\u2029b", " a", "a ", "\xff",
		strings.Repeat("x", access.MaxPrincipalBytes+1),
	} {
		err := access.CheckPrincipal(name)
		if err == nil || !strings.Contains(err.Error(), "want a name of 1 to 256 bytes") || len(name) > 3 && strings.Contains(err.Error(), name) {
			t.Errorf("%q: got %v, want it refused with what is allowed, without repeating it", name, err)
		}
	}
}
