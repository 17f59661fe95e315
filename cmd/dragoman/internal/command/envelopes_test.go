package command_test

import (
	"encoding/json"
	"strings"
	"testing"

	acpwire "github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

func TestTheExamplesOfACPAreEnvelopesOfEveryKind(t *testing.T) {
	code, out, _ := run(t, "check", "--envelope", "--json")
	var printed struct {
		Envelopes []struct {
			Kind    acpwire.Kind
			Example json.RawMessage
		}
	}
	err := json.Unmarshal([]byte(out), &printed)
	all := printed.Envelopes
	if code != command.ExitDone || err != nil || len(all) != len(acpwire.Kinds()) {
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
	code, out, _ := run(t, "check", "--envelope", "query", "ack")
	if code != command.ExitDone || !strings.HasPrefix(out, "// query: ") || !strings.Contains(out, "\n\n// ack: ") || strings.Contains(out, "// notify: ") {
		t.Errorf("got %d and\n%s\nwant query and ack, annotated", code, out)
	}
	code, _, errs := run(t, "check", "--envelope", "telegram")
	if code != command.ExitUsage || !strings.Contains(errs, `no kind "telegram": name some of ping, `) {
		t.Errorf("got %d %s, want a usage error that names the kinds", code, errs)
	}
}

func TestHelpIsPrintedOfACommandBelowAnother(t *testing.T) {
	for _, args := range [][]string{{"help", "config", "set-agent"}, {"config", "set-agent", "--help"}} {
		if code, out, stderr := run(t, args...); code != command.ExitDone || !strings.Contains(out, "dragoman config set-agent ID [flags]") {
			t.Errorf("dragoman %q: got %d, %q and %q, want the help of set-agent", args, code, out, stderr)
		}
	}
}

func TestKindsOfEnvelopesNeedTheirFlag(t *testing.T) {
	if code, _, stderr := run(t, "check", "query"); code != command.ExitUsage || !strings.Contains(stderr, `unexpected argument "query"`) {
		t.Errorf("kinds without --envelope: got %d and %q, want a usage error", code, stderr)
	}
}
