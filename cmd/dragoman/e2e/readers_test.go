package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core/task"
)

func TestTheReadersOfATaskAreListedOnTheCommandLine(t *testing.T) {
	s := newStage(t, nil)
	s.cast(t, coven.Name, "guide", 1)
	ada, key := arrive(t, s.service.Addresses().GRPC), s.key()
	id, _, _ := strings.Cut(ada.says("guide", "hang "+key), ".")
	s.await(t, key+" begun")

	out, errs, code := s.says(t, "tasks", id, "--readers")
	if code != command.ExitDone || !strings.Contains(out, "READER") || !strings.Contains(out, "guide") {
		t.Errorf("got %d, %s and %s, want the agent in a table", code, out, errs)
	}
	out, errs, code = s.says(t, "tasks", id, "--readers", "--json")
	var readers []task.ReaderStatus
	if err := json.Unmarshal([]byte(out), &readers); err != nil || code != command.ExitDone {
		t.Fatalf("got %d, %v and %s, want JSON", code, err, errs)
	}
	if !slices.ContainsFunc(readers, func(r task.ReaderStatus) bool {
		return r.Principal.ID == "guide" && r.Principal.Dialect == coven.Name && r.Role == task.Agent && r.Seq > 0
	}) {
		t.Errorf("got %+v, want the agent of Coven among them", readers)
	}
	if _, errs, code := s.says(t, "tasks", "--readers"); code != command.ExitUsage || !strings.Contains(errs, "dragoman tasks ID --readers") {
		t.Errorf("without an id: got %d and %s, want how to name one", code, errs)
	}
	s.post(key+" released", nil)
	s.end(t, key)
}
