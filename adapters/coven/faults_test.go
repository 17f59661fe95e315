package coven

import (
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/dragoman-hub/dragoman/core"
)

func TestEveryFaultHasAStatusAndATextThatComesBack(t *testing.T) {
	for _, code := range core.Codes() {
		if _, ok := statuses[code]; !ok {
			t.Errorf("%s has no gRPC status", code)
		}
		want := core.NewFault(code, "do this: and that")
		if got := faultOf(FaultText(want)); got.Code != want.Code || got.Message != want.Message || got.Retryable != want.Retryable {
			t.Errorf("%s: got %+v, want %+v", code, got, want)
		}
	}
	for status := range faultCodes {
		if status == codes.OK {
			t.Error("OK is no fault")
		}
	}
}

func TestTheTextsOfTheExistingGatewayAreUnderstood(t *testing.T) {
	for text, want := range map[string]core.Code{
		"tool not found":            core.CodeUnsupported,
		"duplicate request ID":      core.CodeConflict,
		"pack disconnected":         core.CodeUnreachable,
		"invalid input: no JSON":    core.CodeInvalid,
		"context deadline exceeded": core.CodeTimeout,
		"":                          core.CodeInternal,
	} {
		if got := faultOf(text); got.Code != want || got.Message == "" {
			t.Errorf("%q: got %v, want code %s and a message", text, got, want)
		}
	}
}

func TestTheTranslationSaysWhatBecomesOfEveryKind(t *testing.T) {
	if err := Translation.Check(); err != nil {
		t.Error(err)
	}
}

func TestAnInstanceIDCanBeReadOutLoud(t *testing.T) {
	seen := make(map[string]bool)
	for range 1000 {
		id := instanceID()
		if len(id) != 8 {
			t.Fatalf("got %q, want 8 characters", id)
		}
		for _, c := range id {
			switch c {
			case '0', 'o', 'O', '1', 'l', 'I', 'i', '!':
				t.Fatalf("got %q, want no %q in it", id, c)
			}
		}
		if seen[id] {
			t.Fatalf("got %q twice", id)
		}
		seen[id] = true
	}
}
