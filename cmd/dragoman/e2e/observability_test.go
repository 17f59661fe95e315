package e2e

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/dragoman-hub/dragoman/adapters/native"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/demo"
)

const observability = "../../../docs/observability/"

// alertRule is a rule of the documentation.
type alertRule struct {
	Alert, Expr string
	Annotations map[string]string
}

func alertRules(t *testing.T) (all []alertRule) {
	t.Helper()
	text, err := os.ReadFile(observability + "dragoman-alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct{ Rules []alertRule }
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) < 10 {
		t.Fatalf("got %d rules, want those of the file", len(all))
	}
	return all
}

// dashboardQuery is a query of a panel.
type dashboardQuery struct{ Expr, LegendFormat string }

// variables are those of Grafana, as they are by default.
var variables = strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*")

func dashboardQueries(t *testing.T) (all []dashboardQuery) {
	t.Helper()
	text, err := os.ReadFile(observability + "dragoman-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct{ Targets []dashboardQuery }
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			q.Expr = variables.Replace(q.Expr)
			all = append(all, q)
		}
	}
	if len(all) < 20 {
		t.Fatalf("got %d queries, want those of the dashboard", len(all))
	}
	return all
}

// busyHub is a hub that has worked: every dialect has asked and answered, a request was refused, a
// queue was full, a file was sent to a dialect without files, and it runs an agent itself.
func busyHub(t *testing.T) *testHub {
	t.Helper()
	h := newTestHub(t, func(c *config.Config) {
		c.Limits.QueueLength = 1
		c.Agents = config.Agents{{Name: "loud", Dialect: config.SpeaksText, Process: config.Process{Command: []string{"tr", "a-z", "A-Z"}}}}
	})
	everybody, err := demo.Join(t.Context(), h.service.Addresses(), h.log)
	t.Cleanup(everybody.Leave)
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range demo.Requesters {
		for _, to := range demo.Answerers {
			if from == to {
				continue
			}
			if _, err := everybody.Ask(t.Context(), from, to, "hello"); err != nil {
				t.Errorf("%s asks %s: %v", from, to, err)
			}
		}
	}
	h.run(t, "ask", "nobody", "hello")
	h.startAgent(t, native.Dialect, "worker", 1)
	asker := piOverWebSocket().connect(t, h, "asker")
	t.Cleanup(asker.leave)
	asker.begin(query{to: "worker", content: "file " + h.key()}).wait(t)
	h.fillQueue(t, 1)
	return h
}

// fillQueue has the agent worker refuse requests because its queue is full.
func (h *testHub) fillQueue(t *testing.T, refusals int) {
	t.Helper()
	first, second := h.key(), h.key()
	h.delegate(t, "worker", "hang "+first)
	h.await(t, first+" begun")
	h.delegate(t, "worker", "say "+second)
	for range refusals {
		if code, out, _ := h.run(t, "ask", "worker", "say "+h.key()); code == command.ExitDone {
			t.Errorf("got %q, want the queue to be full", out)
		}
	}
	h.signal(first+" released", nil)
	h.end(t, second)
}

// Every metric that a query names is there on a hub that has worked, with the labels that it
// selects, groups by and shows, and every metric is documented.
func TestTheQueriesOfTheDashboardAndTheAlertsNameWhatIsThere(t *testing.T) {
	t.Parallel()
	_, text := scrapeAs(t, busyHub(t).url(), "")
	metrics := parseExposition(t, text)
	metrics[seriesName("up", "")] = 1
	for _, q := range dashboardQueries(t) {
		checkNames(t, metrics, q.Expr, q.LegendFormat)
	}
	for _, r := range alertRules(t) {
		checkNames(t, metrics, r.Expr, r.Annotations["summary"])
	}
	page, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (dragoman_\w+|parallax_\w+) `).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(string(page), "`"+m[1]+"`") {
			t.Errorf("got no %s in operations.md, want every metric there", m[1])
		}
	}
}

// The parts of an expression that name something: a metric with its matchers, one matcher, the
// labels that it groups by; and a label in a legend or in the text of an alert.
var (
	selector   = regexp.MustCompile(`\b(up|(?:dragoman|parallax|process)_\w+)(?:\{([^}]*)\})?`)
	matcher    = regexp.MustCompile(`(\w+)(=~|=)"((?:[^"\\]|\\.)*)"`)
	grouping   = regexp.MustCompile(`\b(?:by|without|on|ignoring) \(([^)]*)\)`)
	shownLabel = regexp.MustCompile(`\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}`)
)

func checkNames(t *testing.T, metrics exposition, expr, shown string) {
	t.Helper()
	labels := map[string]bool{} // of the series that it selects
	found := 0
	for _, s := range selector.FindAllStringSubmatch(expr, -1) {
		n := 0
		for series := range metrics {
			if !strings.HasPrefix(series, s[1]+"{") || !matches(t, series, s[2]) {
				continue
			}
			n++
			for _, l := range matcher.FindAllStringSubmatch(series, -1) {
				labels[l[1]] = true
			}
		}
		if found += n; n == 0 {
			t.Errorf("%s: got no series for %s", expr, s[0])
		}
	}
	if found == 0 {
		t.Errorf("%s: got no metric in it", expr)
	}
	var named []string
	for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
		named = append(named, strings.Split(g[1], ", ")...)
	}
	for _, l := range shownLabel.FindAllStringSubmatch(shown, -1) {
		named = append(named, l[1])
	}
	for _, label := range named {
		if !labels[label] {
			t.Errorf("%s, %s: got no label %q", expr, shown, label)
		}
	}
}

// matches reports whether a series has the labels that a selector asks for.
func matches(t *testing.T, series, matchers string) bool {
	t.Helper()
	for _, m := range matcher.FindAllStringSubmatch(matchers, -1) {
		want := strings.ReplaceAll(m[3], `\\`, `\`)
		if m[2] == "=" {
			want = regexp.QuoteMeta(want)
		}
		if !regexp.MustCompile(`[{,]` + m[1] + `="(?:` + want + `)"[,}]`).MatchString(series) {
			return false
		}
	}
	return true
}
