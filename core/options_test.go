package core_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
)

func TestOptionsAreReadAsTexts(t *testing.T) {
	var o core.Options
	if err := json.Unmarshal([]byte(`{"mode":"plan","web":true,"turns":3}`), &o); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(core.Options{"mode": "plan", "web": "true", "turns": "3"}, o); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, text := range []string{`["mode"]`, `{"mode":null}`, `{"mode":["plan"]}`, `{"mode":{}}`} {
		if err := json.Unmarshal([]byte(text), &o); err == nil {
			t.Errorf("%s: got %v, want an error", text, o)
		}
	}
}

func TestTheModelIsSetBeforeTheModeAndThatBeforeOthers(t *testing.T) {
	got := core.Options{"a": "1", "mode": "2", "z": "3", "model": "4"}.Names()
	if diff := cmp.Diff([]string{"model", "mode", "a", "z"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOptionsHaveBounds(t *testing.T) {
	many := core.Options{}
	for i := range 33 {
		many[fmt.Sprint(i)] = "x"
	}
	for name, o := range map[string]core.Options{
		"too many": many, "no name": {"": "x"}, "no value": {"x": ""}, "a long value": {"x": strings.Repeat("x", 257)}, "two lines": {"x": "a\nb"},
	} {
		if err := o.Check(); err == nil || core.AsFault(err).Code != core.CodeInvalid {
			t.Errorf("%s: got %v, want it invalid", name, err)
		}
	}
	if err := (core.Options{"mode": strings.Repeat("x", 256)}).Check(); err != nil {
		t.Errorf("got %v, want it taken", err)
	}
}
