package pirpc

import (
	"testing"

	"github.com/dragoman-hub/dragoman/core"
)

func TestALateDecisionOnAnEarlierDialogAnswersNoLaterOne(t *testing.T) {
	w := &dialog{decided: make(chan core.ApprovalDecided, 1), input: `{"title":"Remove all?"}`}
	r := &run{dialogs: map[string]*dialog{"t1": w}}
	r.decided(core.ApprovalDecided{ID: "t1", Approved: true, InputSHA256: core.InputDigest(`{"title":"List?"}`)})
	if len(w.decided) != 0 {
		t.Errorf("a decision on the dialog before: got %+v, want nothing", <-w.decided)
	}
	r.decided(core.ApprovalDecided{ID: "t1", InputSHA256: core.InputDigest(w.input)})
	if len(w.decided) != 1 {
		t.Error("a decision on the dialog that waits: got none, want it")
	}
}
