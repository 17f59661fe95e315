package hub_test

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/audit"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/quota"
)

func TestOperatorsReadTheAudit(t *testing.T) {
	l, err := audit.Open(t.Context(), audit.Options{Store: audit.NewMemory(journal.Retention{})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("closing the audit: got %v, want no error", err)
		}
	})
	g := &testHub{t, coretest.NewHub(t, hub.Options{Auditor: l})}
	agent, asker := g.agent("a", able), g.connect("r")
	asked := g.ask(asker, "a")
	g.report(agent, asked, core.Done{Text: "the answer"})
	var text strings.Builder
	read := func(line []byte) bool { text.Write(line); return true }
	if err := g.hub.Audit(t.Context(), operator, "", 0, read); err != nil {
		t.Fatalf("got %v, want the audit", err)
	}
	for _, want := range []string{
		`"act":"join","object":"a","outcome":"ok"`,
		`"principal":"r","act":"open","object":"a","task":"` + string(asked.ID()) + `","outcome":"ok"`,
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("got %s, want %s in it", text.String(), want)
		}
	}
	g.wantFault("one who may not operate", g.hub.Audit(t.Context(), core.Principal{ID: "r"}, "", 0, read), core.CodeNotAuthorized)
	none := coretest.NewHub(t, hub.Options{})
	g.wantFault("a hub without an audit", none.Audit(t.Context(), operator, "", 0, read), core.CodeUnsupported)
}

func TestAConnectionOverTheQuotaIsAudited(t *testing.T) {
	l, err := audit.Open(t.Context(), audit.Options{Store: audit.NewMemory(journal.Retention{})})
	if err != nil {
		t.Fatal(err)
	}
	h := coretest.NewHub(t, hub.Options{Auditor: l, Quotas: quota.NewBook(quota.Limits{Connections: 1})})
	ana := hub.Identity{Principal: core.Principal{ID: "ana", Authenticated: true}, Dialect: "native"}
	for range 2 {
		defer h.Connect(ana).Close(nil)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var connects []string
	if err := l.Read(t.Context(), 0, func(line []byte) bool {
		if strings.Contains(string(line), `"act":"connect"`) {
			connects = append(connects, string(line))
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if len(connects) != 1 || !strings.Contains(connects[0], `"principal":"ana","act":"connect","object":"native","outcome":"overloaded"`) {
		t.Errorf("got %q, want one entry of the second connection, which is over the quota", connects)
	}
}
