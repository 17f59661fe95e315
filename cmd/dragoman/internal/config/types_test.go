package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	case *Options:
		if shown == "an object" {
			return at + ": only editor agents have it"
		}
		return at + ": want names and values such as {effort: high, web: true}, got " + shown
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
	case *float64:
		if written == "1.5" && s.isAmount {
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
	// check loads a file with a line for each setting, after a head.
	check := func(head, indent, path string, settings []*Setting) {
		for _, w := range wrongTypes {
			file, line := head, strings.Count(head, "\n")
			wants := map[*Setting]string{}
			for _, s := range settings {
				line++
				file += indent + s.Key + ": " + w.written + "\n"
				indent = strings.ReplaceAll(indent, "-", " ")
				if want := wrongMessage(s, path+s.Key, w.written, w.shown); want != "" {
					wants[s] = fmt.Sprintf("dragoman.yaml:%d: %s", line, want)
					n++
				}
			}
			if indent != "" {
				indent = "  - "
			}
			err := loadText(t, file)
			if err == nil {
				t.Errorf("%s%s: got no error, want some", path, w.written)
				continue
			}
			for s, want := range wants {
				at := strings.Index(err.Error(), want)
				if at < 0 {
					t.Errorf("%s%s: %s: got\n%v\nwant %s", path, s.Key, w.written, err, want)
					continue
				}
				text, _, _ := strings.Cut(err.Error()[at:], "\n")
				if _, isTime := s.field.(*time.Duration); isTime && w.written == "-7" && !strings.Contains(text, "write it with its unit, such as ") {
					t.Errorf("%s%s: got %s, want the unit asked for", path, s.Key, text)
				}
			}
			for _, foreign := range []string{"map[", "interface", "int64", "unmarshal", "%!"} {
				if strings.Contains(err.Error(), foreign) {
					t.Errorf("%s%s: got %v, want no %s in it", path, w.written, err, foreign)
				}
			}
		}
	}
	for some := range slices.Chunk(All(), maxProblems/2) {
		check("---\n", "", "", some)
	}
	for name, e := range map[string]entry{"agents": new(Agent), "packs": new(Pack), "budgets": new(Budget), "auth.jwt": new(Issuer)} {
		check(name+":\n", "  - ", name+"[0].", *e.settings().all)
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
