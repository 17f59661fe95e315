package procgroup_test

import (
	"testing"

	"github.com/dragoman-hub/dragoman/core/procgroup"
)

func TestTheLastOfAVariableCounts(t *testing.T) {
	env := []string{"PATH=/bin", "PATH2=/no", "PATH=/usr/bin=x", "EMPTY=", "nonsense"}
	for name, want := range map[string]string{"PATH": "/usr/bin=x", "EMPTY": "", "MISSING": "", "nonsense": ""} {
		if got := procgroup.EnvValue(env, name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestAListHasANameAsTheSystemComparesNames(t *testing.T) {
	for name, want := range map[string]bool{"PATH": true, "Path": procgroup.SameEnv("a", "A"), "PATHS": false} {
		if got := procgroup.HasEnv([]string{"HOME", "PATH"}, name); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}
