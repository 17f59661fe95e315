package config_test

import (
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

func TestAYAMLErrorNamesTheLineInWhichSomebodyLooks(t *testing.T) {
	for text, want := range map[string]string{
		"a:\n  - {b: c, d: e f: g}\n":       "line 2: an object is not closed: want , or } in this line or near it",
		"a:\n\n\n- b: c\n  d: [e]\n   f: g": "line 4: want NAME: value, indented like its neighbours, in this line or near it",
		"a:\n  - b\n  - d: *":               `line 3: a value that begins with * or & refers to another one: put it in quotes, such as "*"`,
		"a:\n\t- b":                         "line 2: a value cannot begin with this character: put it in quotes, and indent with blanks, not with tabs",
	} {
		var v any
		err := yaml.Unmarshal([]byte(text), &v)
		if err == nil || config.PlainYAML(err.Error()) != want {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
