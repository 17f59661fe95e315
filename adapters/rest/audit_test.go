package rest_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/audit"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
)

func TestTheAuditIsReadAsItIsStored(t *testing.T) {
	l, err := audit.Open(t.Context(), audit.Options{Store: audit.NewMemory(journal.Retention{})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	g := start(t, hub.Options{Auditor: l}, rest.Options{})
	for range 3 {
		g.post("/v1/tasks", `{"to":"nobody","content":"a secret"}`).refused(http.StatusNotFound, core.CodeUnknownAgent)
	}
	all := g.get("/v1/audit")
	lines := bytes.SplitAfter(bytes.TrimSuffix(all.body, []byte("\n")), []byte("\n"))
	if got := all.header.Get("Content-Type"); got != "application/x-ndjson" || len(lines) != 6 {
		t.Fatalf("got %s of %s, want 6 lines: the start, the checker of the promises, and three requests", all.body, got)
	}
	if err := coretest.VerifyAudit(slices.Values(lines)); err != nil {
		t.Errorf("got %v, want a chain", err)
	}
	var last audit.Line
	if err := json.Unmarshal(lines[5], &last); err != nil || last.Act != "open" || last.Object != "nobody" || last.Outcome != "unknown_agent" || last.Principal != operator {
		t.Errorf("got %+v and %v, want the refused request", last, err)
	}
	if bytes.Contains(all.body, []byte("secret")) {
		t.Errorf("got %s, want no content", all.body)
	}
	if got := g.get("/v1/audit?after=1&limit=2").body; !bytes.Equal(got, append(lines[1], lines[2]...)) {
		t.Errorf("got %s, want the second and the third line", got)
	}
	if got := g.get("/v1/audit?after=99"); got.status != http.StatusOK || len(got.body) > 0 {
		t.Errorf("got %d and %s, want nothing", got.status, got.body)
	}
	g.get("/v1/audit?after=x").refused(http.StatusBadRequest, core.CodeInvalid, "the seq of a line")
	g.get("/v1/audit?limit=0").refused(http.StatusBadRequest, core.CodeInvalid)
	g.get("/v1/audit", "X-User: ann").refused(http.StatusForbidden, core.CodeNotAuthorized, "the audit is for operators")
}
