package command

import "testing"

func TestEveryCommandHasAClass(t *testing.T) {
	for kind := range classes {
		if Table[kind] == nil {
			t.Errorf("%s has a class and is no command", kind)
		}
	}
	for kind, c := range Table {
		if c.Mutates && !c.Control && classes[kind] == 0 {
			t.Errorf("%s changes a session and has no class, want long or endless", kind)
		}
	}
}
