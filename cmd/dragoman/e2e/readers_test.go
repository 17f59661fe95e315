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

func TestTasksListsTheReadersOfATask(t *testing.T) {
	h := newTestHub(t, nil)
	h.startAgent(t, coven.Name, "guide", 1)
	ada, key := connectCovenClient(t, h.service.Addresses().GRPC), h.key()
	id, _, _ := strings.Cut(ada.send("guide", "hang "+key), ".")
	h.await(t, key+" begun")

	code, out, errs := h.run(t, "tasks", id, "--readers")
	if code != command.ExitDone || !strings.Contains(out, "READER") || !strings.Contains(out, "guide") {
		t.Errorf("got %d, %s and %s, want the agent in a table", code, out, errs)
	}
	code, out, errs = h.run(t, "tasks", id, "--readers", "--json")
	var list struct{ Readers []task.ReaderStatus }
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != command.ExitDone {
		t.Fatalf("got %d, %v and %s, want JSON", code, err, errs)
	}
	if !slices.ContainsFunc(list.Readers, func(r task.ReaderStatus) bool {
		return r.Principal.ID == "guide" && r.Principal.Dialect == coven.Name && r.Role == task.Agent && r.Seq > 0
	}) {
		t.Errorf("got %+v, want the agent of Coven among them", list.Readers)
	}
	if code, _, errs := h.run(t, "tasks", "--readers"); code != command.ExitUsage || !strings.Contains(errs, "dragoman tasks ID --readers") {
		t.Errorf("without an id: got %d and %s, want how to name one", code, errs)
	}
	h.signal(key+" released", nil)
	h.end(t, key)
}
