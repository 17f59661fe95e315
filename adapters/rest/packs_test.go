package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/tool"
)

func TestPacksAreListedWithTheirToolsAndForOperatorsWithTheirState(t *testing.T) {
	lost := &core.Child{State: core.ChildRestarting, Restarts: 2, LastError: "it ended"}
	failed := &core.Child{State: core.ChildFailed, LastError: "no such program"}
	g := start(t, hub.Options{}, rest.Options{Packs: func() []hub.PackStatus {
		return []hub.PackStatus{{ID: "files", Dialect: "mcp", Child: lost}, {ID: "absent", Dialect: "mcp", Child: failed}}
	}})
	for id, dialect := range map[string]string{"files": "mcp", "sky": "coven"} {
		s := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: id}, Dialect: dialect})
		t.Cleanup(func() { s.Close(nil) })
		if err := s.Provide(id, []tool.Definition{{Name: id + ".z"}, {Name: id + ".a"}}); err != nil {
			t.Fatal(err)
		}
	}
	files, sky := hub.PackStatus{ID: "files", Dialect: "mcp", Tools: []string{"files.a", "files.z"}}, hub.PackStatus{ID: "sky", Dialect: "coven", Tools: []string{"sky.a", "sky.z"}}
	list := func(who ...string) []hub.PackStatus {
		t.Helper()
		var got struct{ Packs []hub.PackStatus }
		g.get("/v1/packs", who...).into(http.StatusOK, &got)
		return got.Packs
	}
	if diff := cmp.Diff([]hub.PackStatus{files, sky}, list("X-User: ann")); diff != "" {
		t.Errorf("for ann (-want +got):\n%s", diff)
	}
	files.Child = lost
	want := []hub.PackStatus{{ID: "absent", Dialect: "mcp", Tools: []string{}, Child: failed}, files, sky}
	if diff := cmp.Diff(want, list()); diff != "" {
		t.Errorf("for an operator (-want +got):\n%s", diff)
	}
}

func TestUnderRulesTheStateOfPacksIsForWhoMayOperate(t *testing.T) {
	rules := coretest.Rules(t, "ann operate", "bob see")
	g := start(t, hub.Options{Authorizer: rules}, rest.Options{Packs: func() []hub.PackStatus {
		return []hub.PackStatus{{ID: "absent", Dialect: "mcp", Child: &core.Child{State: core.ChildFailed, LastError: "no such program"}}}
	}})
	for who, want := range map[string]bool{"ann": true, "bob": false} {
		if got := g.get("/v1/packs", "X-User: "+who); got.status != http.StatusOK || strings.Contains(string(got.body), "no such program") != want {
			t.Errorf("for %s: got %d and %s, want the pack that failed %v", who, got.status, got.body, want)
		}
	}
}
