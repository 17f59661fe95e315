package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// wrongTypes are values of every type that YAML has, as a file writes them, and as an error
// shows them.
var wrongTypes = []struct{ written, shown string }{
	{"{a: 1}", "an object"}, {"[[1]]", "a list"}, {"1.5", "1.5"}, {"-7", "-7"}, {"true", "true"}, {`"no such text"`, `"no such text"`}, {"2001-01-01", "a date"},
}

// wrongMessage returns how the error begins for a value of wrongTypes, or "" if the setting
// accepts it.
func wrongMessage(s *Setting, at, written, shown string) string {
	switch s.field.(type) {
	case list:
		if written == "[[1]]" {
			return at + "[0]: want an object such as {"
		}
		return at + ": want a list of objects, got " + shown
	case *[]string:
		if written == "[[1]]" {
			return at + "[0]: want text, got a list"
		}
		if written == `"no such text"` && !s.onlyList {
			return ""
		}
	case *string:
		if written == `"no such text"` && s.choices == nil && s.pattern == nil {
			return ""
		}
	case *bool, **bool:
		if written == "true" {
			return ""
		}
	}
	return at + ": want " + s.wanted() + ", got " + shown
}

// Every setting refuses every type that it is not with its path, its line, what it wants, what it
// got, and without a word of Go.
func TestEverySettingRefusesEveryWrongType(t *testing.T) {
	n := 0
	check := func(s *Setting, at, file string) {
		for _, w := range wrongTypes {
			want := wrongMessage(s, at, w.written, w.shown)
			if want == "" {
				continue
			}
			n++
			err := loadText(t, strings.Replace(file, "VALUE", w.written, 1))
			if err == nil || !strings.Contains(err.Error(), "dragoman.yaml:2: "+want) {
				t.Errorf("%s: %s: got %v, want dragoman.yaml:2: %s", at, w.written, err, want)
				continue
			}
			for _, foreign := range []string{"map[", "interface", "int64", "unmarshal", "%!"} {
				if strings.Contains(err.Error(), foreign) {
					t.Errorf("%s: %s: got %v, want no %s in it", at, w.written, err, foreign)
				}
			}
			if _, isTime := s.field.(*time.Duration); isTime && w.written == "-7" && !strings.Contains(err.Error(), "write it with its unit, such as ") {
				t.Errorf("%s: got %v, want the unit asked for", at, err)
			}
		}
	}
	for _, s := range All() {
		check(s, s.Key, fmt.Sprintf("---\n%s: VALUE\n", s.Key))
	}
	for name, e := range map[string]entry{"agents": new(Agent), "packs": new(Pack), "budgets": new(Budget)} {
		for _, s := range *e.settings().all {
			check(s, fmt.Sprintf("%s[0].%s", name, s.Key), fmt.Sprintf("---\n%s: [{%s: VALUE}]\n", name, s.Key))
		}
	}
	if n < 500 {
		t.Errorf("got %d values, want those of every setting", n)
	}
}

// loadText loads a settings file.
func loadText(t *testing.T, text string) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dragoman.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddFlags(fs)
	if err := fs.Parse([]string{"--config", path}); err != nil {
		t.Fatal(err)
	}
	_, err := Load(fs, nil)
	return err
}
