package metrics_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/adapters/metrics"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/memory"
	"github.com/dragoman-hub/dragoman/core/quota"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func scrape(t *testing.T, handler http.Handler) string {
	t.Helper()
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("got %d and %s, want 200", w.Code, w.Body)
	}
	return w.Body.String()
}

func TestAScrapeReportsTheStateOfTheHub(t *testing.T) {
	b := memory.New(1 << 20)
	h := coretest.NewHub(t, hub.Options{Memory: b, Quotas: quota.NewBook(quota.Limits{Connections: 1})})
	b.Take(memory.Bodies, 5000)
	b.Refuse()
	for range 2 {
		defer h.Connect(hub.Identity{Principal: core.Principal{ID: "p", Authenticated: true}}).Close(nil)
	}
	handler := metrics.New(h, metrics.Options{Version: "1.2.3", Children: func() []metrics.Child {
		return []metrics.Child{{Kind: "agent", Name: "gemini", Child: core.Child{State: core.ChildReady, Restarts: 2}}, {Kind: "pack", Name: "files", Child: core.Child{State: core.ChildFailed}}}
	}, Parallax: func() []metrics.Traffic {
		return []metrics.Traffic{{"sent", "task", 3, 0}, {"received", "task_result", 2, 0.5}}
	}})
	s := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}, Dialect: "parallax"})
	defer s.Close(nil)
	// Agents may choose any names.
	odd := "a \"b\"\n\xff"
	if err := s.Join(core.Card{ID: "a", Dialect: "parallax", Capabilities: []string{"x", "x", odd}}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	s.SetVitals(core.Vitals{Status: "healthy", Metrics: map[string]float64{"cpuUsage": 45, odd: 1}})
	s.SetMissedHeartbeats(2)
	h.Count("parallax.unhealthy")
	got := scrape(t, handler)
	for _, want := range []string{
		`dragoman_build_info{version="1.2.3"} 1`,
		`dragoman_agents{dialect="parallax",state="idle"} 1`,
		`dragoman_tasks_running 0`,
		`dragoman_tasks_queued 0`,
		`dragoman_events_total{name="parallax.unhealthy"} 1`,
		`dragoman_agent_active_tasks{agent="a"} 0`,
		`dragoman_agent_missed_heartbeats{agent="a"} 2`,
		`dragoman_agent_vital{agent="a",metric="cpuUsage"} 45`,
		`dragoman_events_total{name="audit.missing"} 0`,
		`dragoman_journal_failing 0`,
		`dragoman_approvals_waiting 0`,
		`dragoman_approvals_oldest_seconds 0`,
		`dragoman_approvals_timeout_seconds 86400`,
		`dragoman_questions_waiting 0`,
		`dragoman_questions_oldest_seconds 0`,
		`dragoman_memory_held_bytes{kind="bodies"} 5000`,
		`dragoman_memory_limit_bytes 1.048576e+06`,
		`dragoman_memory_refused_total 1`,
		`dragoman_usage_cost_total{currency="USD"} 0`, `dragoman_usage_tokens_total{kind="input"} 0`, `dragoman_usage_unpriced_total 0`,
		`dragoman_quota_refused_total{quota="connections"} 1`,
		`dragoman_child_ready{kind="agent",name="gemini",state="ready"} 1`,
		`dragoman_child_ready{kind="pack",name="files",state="failed"} 0`,
		`dragoman_child_restarts{kind="agent",name="gemini"} 2`,
		`parallax_agents_connected{capability="x"} 1`,
		`parallax_ws_messages_total{direction="sent",type="task"} 3`,
		`parallax_ws_messages_total{direction="received",type="task_result"} 2`,
		`parallax_ws_message_latency_seconds_sum{type="task_result"} 0.5`,
		`parallax_ws_message_latency_seconds_count{type="task_result"} 2`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("got no line %s in:\n%s", want, got)
		}
	}
}

// lossy has a requester's side that folds files and refuses foreign frames, and an agent's side that
// refuses context.
var lossy = core.Translation{
	Dialect:     "lossy",
	ToAgent:     core.Table{core.KindInjected: {How: core.Refused}, core.KindOpened: {How: core.Folded}, core.KindText: {How: core.Folded}},
	ToRequester: core.Table{core.KindFile: {How: core.Folded}, core.KindForeign: {How: core.Refused}, core.KindText: {How: core.Native}, core.KindInjected: {How: core.Folded}},
}

// What two dialects lose is counted once the task has ended, in the direction in which it went.
func TestLossesAreReportedByPairOfDialects(t *testing.T) {
	h := coretest.NewHub(t, hub.Options{})
	handler := metrics.New(h, metrics.Options{Translations: core.Translations{"lossy": lossy, "whole": {}}})
	for _, pair := range [][2]string{{"lossy", "whole"}, {"whole", "lossy"}, {"lossy", "lossy"}, {"unknown", "whole"}} {
		asker := h.Connect(hub.Identity{Principal: core.Principal{ID: "asker"}, Dialect: pair[0]})
		agent := h.Connect(hub.Identity{Principal: core.Principal{ID: "agent"}, Dialect: pair[1]})
		if err := agent.Join(core.Card{ID: "agent", Dialect: pair[1], Features: core.FeatureInjection}, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		task, err := asker.Open(core.Request{To: core.ToAgent("agent"), Content: "hello"}, hub.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if b, err := agent.Next(t.Context()); err != nil || b.Task == nil {
			t.Fatalf("got %+v and %v, want the task", b, err)
		}
		if err := asker.Inject(hub.NoWait, task.ID(), core.Injected{ID: "i", Content: "more"}); err != nil {
			t.Fatal(err)
		}
		for _, body := range []core.Body{
			core.Text{Text: "a"}, core.File{Name: "f", Data: []byte("x")}, core.File{Name: "g", Data: []byte("y")},
			core.ForeignFrame{Dialect: pair[1], Name: "odd"}, core.Done{},
		} {
			if scraped := scrape(t, handler); strings.Contains(scraped, `from="`+pair[1]+`",how="folded",kind="file",to="`+pair[0]+`"`) {
				t.Errorf("%v: got a loss before the task has ended:\n%s", pair, scraped)
			}
			if err := agent.Report(task.ID(), body, nil); err != nil {
				t.Fatal(err)
			}
		}
		agent.Close(nil)
		asker.Close(nil)
	}
	var got []string
	for line := range strings.Lines(scrape(t, handler)) {
		if rest, ok := strings.CutPrefix(line, "dragoman_translation_losses_total"); ok {
			got = append(got, strings.TrimSpace(rest))
		}
	}
	want := []string{
		`{from="lossy",how="folded",kind="file",to="lossy"} 2`,
		`{from="lossy",how="refused",kind="foreign",to="lossy"} 1`,
		`{from="lossy",how="refused",kind="injected",to="lossy"} 1`,
		`{from="whole",how="folded",kind="file",to="lossy"} 2`,
		`{from="whole",how="refused",kind="foreign",to="lossy"} 1`,
		`{from="whole",how="refused",kind="injected",to="lossy"} 1`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("losses (-want +got)\n%s", diff)
	}
}
