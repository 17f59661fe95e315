package config_test

import (
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

func TestAYAMLErrorNamesTheLineInWhichSomebodyLooks(t *testing.T) {
	for text, want := range map[string]string{
		"a:\n  - {b: c, d: e f: g}\n":       "line 2: an object is not closed: want , or } in this line or near it",
		"a:\n\n\n- b: c\n  d: [e]\n   f: g": "line 4: want NAME: value, indented like its neighbours, in this line or near it",
		"a:\n  - b\n  - d: *":               `line 3: a value that begins with * or & refers to another one: put it in quotes, such as "*"`,
		"a:\n\t- b":                         "line 2: a value cannot begin with this character: put it in quotes, and indent with blanks, not with tabs",
	} {
		if _, err := config.ReadYAML([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
