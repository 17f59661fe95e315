package childenv_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/core/childenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheLastOfAVariableCounts(t *testing.T) {
	env := []string{"PATH=/bin", "PATH2=/no", "PATH=/usr/bin=x", "EMPTY=", "nonsense"}
	for name, want := range map[string]string{"PATH": "/usr/bin=x", "EMPTY": "", "MISSING": "", "nonsense": ""} {
		if got := childenv.Value(env, name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestAListHasANameAsTheSystemComparesNames(t *testing.T) {
	for name, want := range map[string]bool{"PATH": true, "Path": childenv.Same("a", "A"), "PATHS": false} {
		if got := childenv.Has([]string{"HOME", "PATH"}, name); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}
