package config_test

import (
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

func TestAYAMLErrorNamesTheLineInWhichSomebodyLooks(t *testing.T) {
	for text, want := range map[string]string{
		"a:\n  - {b: c, d: e f: g}\n":       "yaml: line 2: did not find expected ',' or '}' in this line or near it",
		"a:\n\n\n- b: c\n  d: [e]\n   f: g": "yaml: line 4: did not find expected key in this line or near it",
		"a:\n  - b\n  - d: *":               "yaml: line 3: did not find expected alphabetic or numeric character",
		"a:\n\t- b":                         "yaml: line 2: found character that cannot start any token",
	} {
		var v any
		err := yaml.Unmarshal([]byte(text), &v)
		if err == nil || config.PlainYAML(err.Error()) != want {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
