package command

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	acpwire "github.com/dragoman-hub/dragoman/adapters/acp/wire"
)

// printed runs a command line and returns its exit code and what it printed.
func printed(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = Run(context.Background(), args, Streams{io.NopCloser(strings.NewReader("")), nopCloser{&o}, &e})
	return code, o.String(), e.String()
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func TestTheExamplesOfACPAreEnvelopesOfEveryKind(t *testing.T) {
	code, out, _ := printed(t, "check", "--envelope", "--json")
	var all []struct {
		Kind    acpwire.Kind
		Example json.RawMessage
	}
	if err := json.Unmarshal([]byte(out), &all); code != ExitDone || err != nil || len(all) != len(acpwire.Kinds()) {
		t.Fatalf("got %d, %v and %d examples, want %d", code, err, len(all), len(acpwire.Kinds()))
	}
	for _, x := range all {
		e, err := acpwire.Decode(x.Example, acpwire.DefaultMaxEnvelopeBytes)
		if err == nil {
			err = e.Check()
		}
		if err != nil || e.Kind != x.Kind {
			t.Errorf("%s: got %v and the kind %s, want an envelope of it", x.Kind, err, e.Kind)
		}
	}
}

func TestTheExamplesOfACPAreAnnotatedAndMayBeChosen(t *testing.T) {
	code, out, _ := printed(t, "check", "--envelope", "query", "ack")
	if code != ExitDone || !strings.HasPrefix(out, "// query: ") || !strings.Contains(out, "\n\n// ack: ") || strings.Contains(out, "// notify: ") {
		t.Errorf("got %d and\n%s\nwant query and ack, annotated", code, out)
	}
	code, _, errs := printed(t, "check", "--envelope", "telegram")
	if code != ExitUsage || !strings.Contains(errs, `no kind "telegram": name some of ping, `) {
		t.Errorf("got %d %s, want a usage error that names the kinds", code, errs)
	}
}

func TestHelpIsPrintedOfACommandBelowAnother(t *testing.T) {
	for _, args := range [][]string{{"help", "config", "set-agent"}, {"config", "set-agent", "--help"}} {
		if code, out, complaint := printed(t, args...); code != ExitDone || !strings.Contains(out, "dragoman config set-agent ID [flags]") {
			t.Errorf("dragoman %q: got %d, %q and %q, want the help of set-agent", args, code, out, complaint)
		}
	}
}

func TestTheCommandThatShowedEnvelopesSaysWhereTheyAreNow(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"acp"}, "write 'dragoman check --envelope'"},
		{[]string{"acp", "--help"}, "write 'dragoman check --envelope'"},
		{[]string{"acp", "examples", "query", "--json"}, "write 'dragoman check --envelope query --json'"},
	} {
		if code, out, complaint := printed(t, tt.args...); code != ExitUsage || out != "" || !strings.Contains(complaint, tt.want) {
			t.Errorf("dragoman %q: got %d, %q and %q, want a usage error with %q", tt.args, code, out, complaint, tt.want)
		}
	}
	if code, _, complaint := printed(t, "check", "query"); code != ExitUsage || !strings.Contains(complaint, `unexpected argument "query"`) {
		t.Errorf("kinds without --envelope: got %d and %q, want a usage error", code, complaint)
	}
}
