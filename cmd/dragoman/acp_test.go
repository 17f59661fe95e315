package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp"
)

// printed runs a command line and returns its exit code and what it printed.
func printed(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(context.Background(), args, streams{io.NopCloser(strings.NewReader("")), nopCloser{&o}, &e})
	return code, o.String(), e.String()
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func TestTheExamplesOfACPAreEnvelopesOfEveryKind(t *testing.T) {
	code, out, _ := printed(t, "acp", "examples", "--json")
	var all []struct {
		Kind    acp.Kind
		Example json.RawMessage
	}
	if err := json.Unmarshal([]byte(out), &all); code != exitDone || err != nil || len(all) != len(acp.Kinds()) {
		t.Fatalf("got %d, %v and %d examples, want %d", code, err, len(all), len(acp.Kinds()))
	}
	for _, x := range all {
		e, err := acp.Decode(x.Example, acp.DefaultMaxEnvelopeBytes)
		if err == nil {
			err = e.Check()
		}
		if err != nil || e.Kind != x.Kind {
			t.Errorf("%s: got %v and the kind %s, want an envelope of it", x.Kind, err, e.Kind)
		}
	}
}

func TestTheExamplesOfACPAreAnnotatedAndMayBeChosen(t *testing.T) {
	code, out, _ := printed(t, "acp", "examples", "query", "ack")
	if code != exitDone || !strings.HasPrefix(out, "// query: ") || !strings.Contains(out, "\n\n// ack: ") || strings.Contains(out, "// notify: ") {
		t.Errorf("got %d and\n%s\nwant query and ack, annotated", code, out)
	}
	code, _, errs := printed(t, "acp", "examples", "telegram")
	if code != exitUsage || !strings.Contains(errs, `no kind "telegram": name some of ping, `) {
		t.Errorf("got %d %s, want a usage error that names the kinds", code, errs)
	}
}
