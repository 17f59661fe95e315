package command

import (
	"errors"
	"testing"
)

func TestAnErrorOfSeveralLinesIsToldInOne(t *testing.T) {
	for text, want := range map[string]string{
		"one line":               "one line",
		"a is wrong\nb is wrong": "a is wrong; b is wrong",
		"No key.\n\nUse /login. See:\n  a\n  b\n": "No key. Use /login. See: a; b",
		"\n": "",
	} {
		if got := inLine(errors.New(text)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
