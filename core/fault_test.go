package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
)

func TestWhetherATryMayHelpFollowsFromTheCode(t *testing.T) {
	retryable := map[core.Code]bool{core.CodeUnreachable: true, core.CodeOverloaded: true, core.CodeRateLimited: true, core.CodeTimeout: true}
	seen := map[core.Code]bool{}
	for _, code := range core.Codes() {
		f := core.NewFault(code, "%d of %d", 1, 2)
		if f.Code != code || f.Message != "1 of 2" || f.Retryable != retryable[code] {
			t.Errorf("got %+v, want code %s, message %q and retryable %v", f, code, "1 of 2", retryable[code])
		}
		if seen[code] || code == "" {
			t.Errorf("got the code %q twice or empty, want each once", code)
		}
		seen[code] = true
	}
	if got, want := len(core.Codes()), 18; got != want {
		t.Errorf("got %d codes, want %d", got, want)
	}
}

func TestAnyErrorBecomesAFault(t *testing.T) {
	invalid := core.NewFault(core.CodeInvalid, "no")
	for name, c := range map[string]struct {
		err   error
		code  core.Code
		says  string
		retry bool
	}{
		"a fault":               {invalid, core.CodeInvalid, "no", false},
		"a wrapped fault":       {fmt.Errorf("reading: %w", invalid), core.CodeInvalid, "no", false},
		"a fault among others":  {errors.Join(io.EOF, invalid), core.CodeInvalid, "no", false},
		"a deadline":            {fmt.Errorf("waiting: %w", context.DeadlineExceeded), core.CodeTimeout, "the deadline passed", true},
		"a cancellation":        {context.Canceled, core.CodeCancelled, "the caller stopped waiting", false},
		"a fault by a deadline": {core.NewFault(core.CodeBudget, "spent").Because(context.DeadlineExceeded), core.CodeBudget, "spent", false},
		"anything else":         {errors.New("password is 1234"), core.CodeInternal, core.InternalMessage, false},
	} {
		f := core.AsFault(c.err)
		if f == nil || f.Code != c.code || f.Message != c.says || f.Retryable != c.retry {
			t.Errorf("%s: got %+v, want %s: %s, retryable %v", name, f, c.code, c.says, c.retry)
			continue
		}
		if !errors.Is(c.err, f) && !errors.Is(f, c.err) {
			t.Errorf("%s: got a fault without %v behind it, want it kept for the log", name, c.err)
		}
	}
	if got := core.AsFault(nil); got != nil {
		t.Errorf("no error: got %v, want nil", got)
	}
}

func TestTheCauseOfAFaultStaysInTheProcess(t *testing.T) {
	f := core.AsFault(errors.New("password is 1234"))
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"code":"internal","message":"` + core.InternalMessage + `"}`; string(text) != want {
		t.Errorf("got %s, want %s", text, want)
	}
	for _, shown := range []string{f.Error(), string(text), fmt.Sprint(f)} {
		if strings.Contains(shown, "1234") {
			t.Errorf("got %q, want nothing of the cause in it", shown)
		}
	}
}

func TestACauseIsAddedToACopy(t *testing.T) {
	shared := core.NewFault(core.CodeUnreachable, "gone")
	shared.PeerCode = "GONE"
	f := shared.Because(io.EOF)
	if !errors.Is(f, io.EOF) {
		t.Errorf("got %v, want io.EOF behind it", f)
	}
	if errors.Is(shared, io.EOF) {
		t.Error("got the cause in the fault that others share, want it in the copy alone")
	}
	if f.Code != shared.Code || f.Message != shared.Message || !f.Retryable || f.PeerCode != "GONE" {
		t.Errorf("got %+v, want the rest as in %+v", f, shared)
	}
}

func TestFaultsCompareByCode(t *testing.T) {
	f := fmt.Errorf("opening: %w", core.NewFault(core.CodeConflict, "taken"))
	for name, c := range map[string]struct {
		target error
		want   bool
	}{
		"the same code":                       {&core.Fault{Code: core.CodeConflict}, true},
		"another code":                        {&core.Fault{Code: core.CodeInvalid}, false},
		"the same code with another message":  {core.NewFault(core.CodeConflict, "late"), false},
		"the same code with the same message": {core.NewFault(core.CodeConflict, "taken"), false},
		"another error":                       {io.EOF, false},
	} {
		if got := errors.Is(f, c.target); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	if got, want := f.Error(), "opening: conflict: taken"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
