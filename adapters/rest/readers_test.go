package rest_test

import (
	"net/http"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

func TestAReaderOfATaskMayListItsReaders(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	id := g.opened(`{"to":"a","content":"hi"}`, "X-User: ann")
	taken := a.accept()
	path := "/v1/tasks/" + string(id) + "/readers"
	var got struct{ Readers []task.ReaderStatus }
	g.get(path, "X-User: ann").into(http.StatusOK, &got)
	found := false
	for _, r := range got.Readers {
		found = found || r.Principal.ID == "a" && r.Role == task.Agent && r.Seq > 0
	}
	if !found {
		t.Errorf("got %+v, want the agent in the list", got.Readers)
	}
	g.get(path, "X-User: bob").refused(http.StatusNotFound, core.CodeUnknownTask)
	g.get("/v1/tasks/0190b5c0-0000-7000-8000-000000000000/readers").refused(http.StatusNotFound, core.CodeUnknownTask)
	a.report(taken, core.Done{})
}
