package coven_test

import (
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
)

func TestFaultsSurviveARoundTripAndHaveAStatus(t *testing.T) {
	for _, code := range core.Codes() {
		if wire.StatusOf(code) == codes.OK {
			t.Errorf("%s has no gRPC status", code)
		}
		want := core.NewFault(code, "do this: and that")
		if got := wire.FaultOf(wire.FaultText(want)); got.Code != want.Code || got.Message != want.Message || got.Retryable != want.Retryable {
			t.Errorf("%s: got %+v, want %+v", code, got, want)
		}
	}
	if code, ok := wire.CodeOf(codes.OK); ok {
		t.Errorf("OK: got code %s, want none", code)
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
		if got := wire.FaultOf(text); got.Code != want || got.Message == "" {
			t.Errorf("%q: got %v, want code %s and a message", text, got, want)
		}
	}
}
