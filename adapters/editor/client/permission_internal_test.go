package client

import (
	"testing"

	"github.com/dragoman-hub/dragoman/core"
)

func TestALateDecisionOnAnEarlierInputAnswersNoLaterRequest(t *testing.T) {
	asked := &permission{input: `{"command":"rm -rf /"}`}
	turn := &turn{permits: map[string]*permission{"t1": asked}}
	late := core.ApprovalDecided{ID: "t1", Approved: true, InputSHA256: core.InputDigest(`{"command":"ls"}`)}
	if got := turn.release(late); got != nil {
		t.Errorf("a decision on the input that the agent withdrew: got %+v, want nothing", got)
	}
	if got := turn.release(core.ApprovalDecided{ID: "t1", InputSHA256: core.InputDigest(asked.input)}); got != asked {
		t.Errorf("a decision on the input that waits: got %+v, want its request", got)
	}
}
