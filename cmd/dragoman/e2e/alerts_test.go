package e2e

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/native"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/memory"
)

// before is how long Prometheus has scraped a hub before something happens, and after is how long
// it goes on.
const (
	before = 20 * time.Minute
	after  = 5 * time.Minute
)

// troubles are the states of a hub in which rules fire, each with those that must. The others must
// not.
var troubles = []struct {
	name  string
	rules []string
	run   func(t *testing.T, metrics *history)
}{
	{"the hub is gone", []string{"DragomanDown"}, hubGone},
	{"the data directory is gone", []string{"DragomanJournalFailing", "DragomanAuditNotWritten", "DragomanAuditLost"}, directoryGone},
	{"an agent of the settings ends again and again", []string{"DragomanChildNotReady", "DragomanChildRestarts"}, childEnds},
	{"an agent does not answer a cancel", []string{"DragomanAgentUnresponsive"}, cancelIgnored},
	{"nobody decides", []string{"DragomanApprovalWaits"}, nobodyDecides},
	{"the memory budget is full", []string{"DragomanMemoryFull", "DragomanMemoryRefuses"}, memoryFull},
	{"somebody is above a quota", []string{"DragomanQuotaRefuses", "DragomanQueueFull"}, aboveQuota},
	{"a queue is full", []string{"DragomanQueueFull"}, queueFull},
	{"somebody guesses tokens", []string{"DragomanCredentialsRefused"}, tokensGuessed},
	{"files are sent to a dialect without files", []string{"DragomanTranslationLoses"}, filesFolded},
}

// Every alert rule fires on the metrics of a hub that is in its state, and only then. On a hub that
// has worked no rule fires, and every query of the dashboard returns something.
func TestEachAlertFiresInItsState(t *testing.T) {
	t.Parallel()
	rules, promtool := alertRules(t), needPromtool(t)
	tested := map[string]bool{}
	for _, trouble := range troubles {
		want := map[string]bool{}
		for _, name := range trouble.rules {
			want[name], tested[name] = true, true
		}
		t.Run(trouble.name, func(t *testing.T) {
			t.Parallel()
			metrics := newHistory()
			trouble.run(t, metrics)
			var all []expectation
			for _, r := range rules {
				all = append(all, fires(r.Alert, want[r.Alert]))
			}
			metrics.check(t, promtool, all)
		})
	}
	t.Run("a hub that has worked", func(t *testing.T) {
		t.Parallel()
		metrics := newHistory()
		metrics.hold(scrape(t, busyHub(t).url()), before)
		var all []expectation
		for _, r := range rules {
			all = append(all, fires(r.Alert, false))
		}
		for _, q := range dashboardQueries(t) {
			all = append(all, expectation{q.Expr, true})
		}
		metrics.check(t, promtool, all)
	})
	if out, err := exec.Command(promtool, "check", "rules", observability+"dragoman-alerts.yaml").CombinedOutput(); err != nil {
		t.Errorf("promtool check rules: %v\n%s", err, out)
	}
	for _, r := range rules {
		if !tested[r.Alert] {
			t.Errorf("%s: got no state in which it fires", r.Alert)
		}
	}
}

// Every rule says where to read what to do.
func TestEachAlertHasARunbook(t *testing.T) {
	page, err := os.ReadFile(observability + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range alertRules(t) {
		_, anchor, _ := strings.Cut(r.Annotations["runbook"], "#")
		if anchor == "" || !regexp.MustCompile(`(?mi)^### `+regexp.QuoteMeta(anchor)+`$`).Match(page) {
			t.Errorf("%s: got the runbook %q, want a heading of README.md", r.Alert, r.Annotations["runbook"])
		}
	}
}

// awaitMetrics waits until a hub says what is wanted, and returns all that it says then. Meanwhile
// it calls again.
func awaitMetrics(t *testing.T, hub string, wanted func(exposition) bool, again func()) exposition {
	t.Helper()
	for late := time.After(watchdog); ; {
		said := scrape(t, hub)
		if wanted(said) {
			return said
		}
		if again != nil {
			again()
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-late:
			t.Fatalf("got %v, want something else at last", said)
		}
	}
}

// counted is what a counter of dragoman_events_total has.
func (e exposition) counted(name string) float64 {
	return e.sum("dragoman_events_total", `name="`+name+`"`)
}

func hubGone(t *testing.T, metrics *history) {
	p := startHub(t)
	metrics.hold(scrape(t, "http://"+p.http), before)
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait() // it was killed
	if resp, err := http.Get("http://" + p.http + "/metrics"); err == nil {
		resp.Body.Close()
		t.Errorf("got %s, want no answer", resp.Status)
	}
	metrics.hold(nil, after)
}

func directoryGone(t *testing.T, metrics *history) {
	dir := filepath.Join(t.TempDir(), "data")
	cmd := program(t, "serve", "--data-dir", dir, "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--pi-addr", "", "--log-format", "json")
	cmd.Env = append(cmd.Env, endsUnrecorded+"=1h")
	h := serveHubCmd(t, cmd, "interval")
	h.startKeeper(t)
	metrics.hold(scrape(t, h.URL), before)
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	awaitMetrics(t, h.URL, func(e exposition) bool { return e.sum("dragoman_journal_failing") == 1 }, nil)
	dropped := func(e exposition) bool { return e.counted("audit.missing") > 0 && e.counted("audit.refused") > 0 }
	metrics.hold(awaitMetrics(t, h.URL, dropped, func() {
		for range 200 { // the audit has room for a few thousand entries that it cannot write
			stream, err := h.Client.Do(t.Context(), http.MethodGet, "/v1/events", "text/event-stream", nil)
			if err != nil {
				t.Fatal(err)
			}
			stream.Body.Close()
		}
	}), after)
}

func childEnds(t *testing.T, metrics *history) {
	may := filepath.Join(t.TempDir(), "may-end") // once this is there, it ends
	h := newLoggingHub(t, slog.DiscardHandler, func(c *config.Config) {
		c.Agents = config.Agents{{Name: "broken", Dialect: config.SpeaksNative, Process: config.Process{
			Command: []string{"sh", "-c", `until test -e "$0"; do sleep 0.02; done; exit 1`, may},
		}}}
	})
	begun := scrape(t, h.url())
	if n, ok := begun[seriesName("dragoman_child_restarts", `kind="agent",name="broken"`)]; !ok || n != 0 {
		t.Errorf("got %v restarts (%t), want 0 from the beginning", n, ok)
	}
	metrics.hold(begun, time.Minute)
	if err := os.WriteFile(may, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	failed := func(e exposition) bool {
		_, ok := e[seriesName("dragoman_child_ready", `kind="agent",name="broken",state="failed"`)]
		return ok
	}
	metrics.hold(awaitMetrics(t, h.url(), failed, nil), after)
}

func cancelIgnored(t *testing.T, metrics *history) {
	h := newTestHub(t, func(c *config.Config) { c.Limits.CancelGrace = 10 * time.Millisecond })
	agent := h.service.Hub().Connect(hub.Identity{Principal: core.Principal{ID: "deaf"}, Dialect: "test"})
	defer agent.Close(nil)
	if err := agent.Join(core.Card{ID: "deaf", Features: core.FeatureCancellation}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	metrics.hold(scrape(t, h.url()), before)
	key := h.key()
	task := h.delegate(t, "deaf", "hang "+key)
	if b, err := agent.Next(t.Context()); err != nil || b.Task == nil {
		t.Fatalf("got %+v and %v, want the task", b, err)
	}
	h.run(t, "cancel", task)
	h.end(t, key)
	metrics.hold(awaitMetrics(t, h.url(), func(e exposition) bool { return e.counted("cancel.unanswered") == 1 }, nil), after)
}

func nobodyDecides(t *testing.T, metrics *history) {
	h := newTestHub(t, func(c *config.Config) { c.Limits.QuestionTimeout = 6 * time.Second })
	h.startAgent(t, native.Dialect, "leaver", 1)
	metrics.hold(scrape(t, h.url()), before)
	key := h.key()
	h.delegate(t, "leaver", "leave "+key)
	h.await(t, key+" approval_requested")
	asked := scrape(t, h.url())
	metrics.hold(asked, scrapeEvery)
	if got := asked.sum("dragoman_approvals_waiting"); got != 1 {
		t.Errorf("got %v approvals that wait, want 1", got)
	}
	late := func(e exposition) bool { return e.sum("dragoman_approvals_oldest_seconds") > 3 }
	metrics.hold(awaitMetrics(t, h.url(), late, nil), scrapeEvery)
	h.end(t, key) // the hub has denied it
	decided := awaitMetrics(t, h.url(), func(e exposition) bool { return e.sum("dragoman_approvals_waiting") == 0 }, nil)
	if got := decided.sum("dragoman_approvals_oldest_seconds"); got != 0 {
		t.Errorf("got an approval that has waited %v s, want none after the hub has denied it", got)
	}
}

func memoryFull(t *testing.T, metrics *history) {
	h := newTestHub(t, func(c *config.Config) { c.Limits.Memory = 256 << 20 })
	metrics.hold(scrape(t, h.url()), before)
	// What peers are sending fills it.
	budget := h.service.Hub().Memory()
	rest := int(budget.Limit() - budget.Held())
	budget.Take(memory.Bodies, rest)
	defer budget.Take(memory.Bodies, -rest)
	for range 3 {
		if code, out, _ := h.run(t, "ask", "anybody", "hello"); code == command.ExitDone {
			t.Errorf("got %q, want it refused", out)
		}
	}
	metrics.hold(scrape(t, h.url()), after)
}

func aboveQuota(t *testing.T, metrics *history) {
	h := newTestHub(t, func(c *config.Config) { c.Quotas.Tasks = 1 })
	h.startAgent(t, native.Dialect, "worker", 1)
	metrics.hold(scrape(t, h.url()), before)
	key := h.key()
	h.delegate(t, "worker", "hang "+key)
	h.await(t, key+" begun")
	metrics.hold(awaitMetrics(t, h.url(), func(e exposition) bool { return e.sum("dragoman_quota_refused_total", `quota="tasks"`) > 12 }, func() { h.run(t, "delegate", "worker", "say "+h.key()) }), after)
	h.signal(key+" released", nil)
	h.end(t, key)
}

func queueFull(t *testing.T, metrics *history) {
	h := newTestHub(t, func(c *config.Config) { c.Limits.QueueLength = 1 })
	h.startAgent(t, native.Dialect, "worker", 1)
	metrics.hold(scrape(t, h.url()), before)
	h.fillQueue(t, 8)
	metrics.hold(scrape(t, h.url()), after)
}

func tokensGuessed(t *testing.T, metrics *history) {
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "root") })
	read := func() exposition {
		t.Helper()
		code, text := scrapeAs(t, h.url(), "root")
		if code != http.StatusOK {
			t.Fatalf("got %d and %s, want the metrics", code, text)
		}
		return parseExposition(t, text)
	}
	metrics.hold(read(), before)
	for n := range 24 {
		if code, _ := scrapeAs(t, h.url(), fmt.Sprintf("guess%d", n)); code != http.StatusUnauthorized {
			t.Fatalf("a wrong token: got %d, want 401", code)
		}
	}
	metrics.hold(read(), after)
}

func filesFolded(t *testing.T, metrics *history) {
	h := newTestHub(t, nil)
	h.startAgent(t, native.Dialect, "worker", 1)
	asker := piOverWebSocket().connect(t, h, "asker")
	defer asker.leave()
	send := func() { asker.begin(query{to: "worker", content: "file " + h.key()}).wait(t) }
	send()
	folded := func(n float64) func(exposition) bool {
		return func(e exposition) bool {
			return e.sum("dragoman_translation_losses_total", `from="native"`, `how="folded"`, `kind="file"`, `to="pi"`) == n
		}
	}
	metrics.hold(awaitMetrics(t, h.url(), folded(1), nil), before)
	for range 12 {
		send()
	}
	metrics.hold(awaitMetrics(t, h.url(), folded(13), nil), after)
}
