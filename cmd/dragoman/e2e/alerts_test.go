package e2e

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/rulefmt"

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

// Every alert rule fires on the metrics of a hub that is in its state, and only then.
func TestEachAlertFiresInItsState(t *testing.T) {
	rules := alertRules(t)
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
			for _, r := range rules {
				fired := metrics.fired(t, r)
				if got := len(fired) > 0; got != want[r.Alert] {
					t.Errorf("%s: got it to fire: %t (%v), want %t", r.Alert, got, fired, want[r.Alert])
				}
				checkAnnotations(t, r, fired)
			}
		})
	}
	page, err := os.ReadFile(observability + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		if !tested[r.Alert] {
			t.Errorf("%s: got no state in which it fires", r.Alert)
		}
		_, anchor, _ := strings.Cut(r.Annotations["runbook"], "#")
		if !regexp.MustCompile(`(?mi)^### ` + regexp.QuoteMeta(anchor) + `$`).Match(page) {
			t.Errorf("%s: got the runbook %q, want a heading of README.md", r.Alert, r.Annotations["runbook"])
		}
	}
}

// checkAnnotations checks that a rule that fires has the labels that its texts name.
func checkAnnotations(t *testing.T, r rulefmt.Rule, fired []map[string]string) {
	t.Helper()
	for _, text := range r.Annotations {
		for _, label := range legendLabel.FindAllStringSubmatch(text, -1) {
			for _, labels := range fired {
				if labels[label[1]] == "" {
					t.Errorf("%s: got the labels %v, want %s, which is in %q", r.Alert, labels, label[1], text)
				}
			}
		}
	}
}

// value returns the sum of the series of a metric.
func (h *history) value(t *testing.T, expr string) float64 {
	t.Helper()
	sum := 0.0
	for _, s := range h.query(t, expr, h.last()) {
		sum += s.F
	}
	return sum
}

// awaitMetric waits until an expression is true on the metrics of the hub, and returns them.
// Meanwhile it calls again.
func awaitMetric(t *testing.T, hub, expr string, again func()) string {
	t.Helper()
	for late := time.After(watchdog); ; {
		text := scrape(t, hub)
		now := newHistory()
		now.hold(t, text, 0)
		if len(now.query(t, expr, now.last())) > 0 {
			return text
		}
		if again != nil {
			again()
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-late:
			t.Fatalf("got no %s in\n%s", expr, regexp.MustCompile(`(?m)^(#|go_|process_).*\n`).ReplaceAllString(text, ""))
		}
	}
}

func hubGone(t *testing.T, metrics *history) {
	p := startHub(t)
	metrics.hold(t, scrape(t, "http://"+p.http), before)
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait() // it was killed
	if resp, err := http.Get("http://" + p.http + "/metrics"); err == nil {
		resp.Body.Close()
		t.Errorf("got %s, want no answer", resp.Status)
	}
	metrics.hold(t, "", after)
}

func directoryGone(t *testing.T, metrics *history) {
	dir := filepath.Join(t.TempDir(), "data")
	cmd := program(t, "serve", "--data-dir", dir, "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--pi-addr", "", "--log-format", "json")
	cmd.Env = append(cmd.Env, endsUnrecorded+"=1h")
	h := serveHubCmd(t, cmd, "interval")
	h.startKeeper(t)
	metrics.hold(t, scrape(t, h.URL), before)
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	awaitMetric(t, h.URL, "dragoman_journal_failing == 1", nil)
	const noted = `dragoman_events_total{name="audit.missing"} > 0 and on () dragoman_events_total{name="audit.refused"} > 0`
	metrics.hold(t, awaitMetric(t, h.URL, noted, func() {
		for range 200 { // the audit has room for a few thousand entries that it cannot write
			h.ask(t, "hello")
		}
	}), after)
}

func childEnds(t *testing.T, metrics *history) {
	h := newLoggingHub(t, slog.DiscardHandler, func(c *config.Config) {
		c.Agents = config.Agents{{Name: "broken", Dialect: config.SpeaksNative, Process: config.Process{Command: []string{"false"}}}}
	})
	metrics.hold(t, awaitMetric(t, h.url(), "dragoman_child_restarts == 0", nil), time.Minute)
	metrics.hold(t, awaitMetric(t, h.url(), `dragoman_child_ready{state="failed"} == 0`, nil), after)
}

func cancelIgnored(t *testing.T, metrics *history) {
	h := newTestHub(t, func(c *config.Config) { c.Limits.CancelGrace = 10 * time.Millisecond })
	agent := h.service.Hub().Connect(hub.Identity{Principal: core.Principal{ID: "deaf"}, Dialect: "test"})
	defer agent.Close(nil)
	if err := agent.Join(core.Card{ID: "deaf", Features: core.FeatureCancellation}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	metrics.hold(t, scrape(t, h.url()), before)
	key := h.key()
	task := h.delegate(t, "deaf", "hang "+key)
	if b, err := agent.Next(t.Context()); err != nil || b.Task == nil {
		t.Fatalf("got %+v and %v, want the task", b, err)
	}
	h.run(t, "cancel", task)
	h.end(t, key)
	metrics.hold(t, awaitMetric(t, h.url(), `dragoman_events_total{name="cancel.unanswered"} == 1`, nil), after)
}

func nobodyDecides(t *testing.T, metrics *history) {
	h := newTestHub(t, func(c *config.Config) { c.Limits.ApprovalTimeout = 6 * time.Second })
	h.startAgent(t, native.Dialect, "leaver", 1)
	metrics.hold(t, scrape(t, h.url()), before)
	key := h.key()
	h.delegate(t, "leaver", "leave "+key)
	h.await(t, key+" approval_requested")
	asked := scrape(t, h.url())
	metrics.hold(t, asked, scrapeEvery)
	if got := metrics.value(t, "dragoman_approvals_waiting"); got != 1 {
		t.Errorf("got %v approvals that wait, want 1", got)
	}
	metrics.hold(t, awaitMetric(t, h.url(), "dragoman_approvals_oldest_seconds > 3", nil), scrapeEvery)
	h.end(t, key) // the hub has denied it
	if text := awaitMetric(t, h.url(), "dragoman_approvals_waiting == 0", nil); !strings.Contains(text, "dragoman_approvals_oldest_seconds 0\n") {
		t.Error("got an oldest approval, want none after the hub has denied it")
	}
}

func memoryFull(t *testing.T, metrics *history) {
	h := newTestHub(t, func(c *config.Config) { c.Limits.Memory = 256 << 20 })
	metrics.hold(t, scrape(t, h.url()), before)
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
	metrics.hold(t, scrape(t, h.url()), after)
}

func aboveQuota(t *testing.T, metrics *history) {
	h := newTestHub(t, func(c *config.Config) { c.Quotas.Tasks = 1 })
	h.startAgent(t, native.Dialect, "worker", 1)
	metrics.hold(t, scrape(t, h.url()), before)
	key := h.key()
	h.delegate(t, "worker", "hang "+key)
	h.await(t, key+" begun")
	metrics.hold(t, awaitMetric(t, h.url(), `dragoman_quota_refused_total{quota="tasks"} > 12`, func() { h.run(t, "delegate", "worker", "say "+h.key()) }), after)
	h.signal(key+" released", nil)
	h.end(t, key)
}

func queueFull(t *testing.T, metrics *history) {
	h := newTestHub(t, func(c *config.Config) { c.Limits.QueueLength = 1 })
	h.startAgent(t, native.Dialect, "worker", 1)
	metrics.hold(t, scrape(t, h.url()), before)
	h.fillQueue(t, 8)
	metrics.hold(t, scrape(t, h.url()), after)
}

func tokensGuessed(t *testing.T, metrics *history) {
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "root") })
	read := func() string {
		t.Helper()
		code, text := scrapeAs(t, h.url(), "root")
		if code != http.StatusOK {
			t.Fatalf("got %d and %s, want the metrics", code, text)
		}
		return text
	}
	metrics.hold(t, read(), before)
	for n := range 24 {
		if code, _ := scrapeAs(t, h.url(), fmt.Sprintf("guess%d", n)); code != http.StatusUnauthorized {
			t.Fatalf("a wrong token: got %d, want 401", code)
		}
	}
	metrics.hold(t, read(), after)
}

func filesFolded(t *testing.T, metrics *history) {
	h := newTestHub(t, nil)
	h.startAgent(t, native.Dialect, "worker", 1)
	asker := piOverWebSocket().connect(t, h, "asker")
	defer asker.leave()
	send := func() { asker.begin(query{to: "worker", content: "file " + h.key()}).wait(t) }
	send()
	const folded = `dragoman_translation_losses_total{from="native", to="pi", kind="file", how="folded"}`
	metrics.hold(t, awaitMetric(t, h.url(), folded+" == 1", nil), before)
	for range 12 {
		send()
	}
	metrics.hold(t, awaitMetric(t, h.url(), folded+" == 13", nil), after)
}
