package command

import "testing"

func TestCommandsThatChangeASessionHaveATimeLimitOfTheirOwn(t *testing.T) {
	for kind, c := range Table {
		if c.Mutates && !c.Control && c.Limit == 0 {
			t.Errorf("%s changes a session and has the short limit, want Long or unlimited", kind)
		}
	}
}
