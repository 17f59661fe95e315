package e2e

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	prom "github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/dragoman-hub/dragoman/adapters/native"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/demo"
)

const observability = "../../../docs/observability/"

// alertRules returns the rules of the documentation. The parser is that of promtool check rules.
func alertRules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(observability+"dragoman-alerts.yaml", false, prom.UTF8Validation)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var all []rulefmt.Rule
	for _, g := range groups.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) < 10 {
		t.Fatalf("got %d rules, want those of the file", len(all))
	}
	return all
}

// panel is a query of the dashboard.
type panel struct {
	Title   string
	Targets []struct{ Expr, LegendFormat string }
}

func dashboard(t *testing.T) (panels []panel) {
	t.Helper()
	text, err := os.ReadFile(observability + "dragoman-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels     []panel
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d.Panels
}

// variables are those of Grafana, as they are by default.
var variables = strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*")

var legendLabel = regexp.MustCompile(`\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}`)

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

// All queries find what they name on a hub that has worked, every metric that it has is documented,
// and no rule fires.
func TestTheQueriesOfTheDashboardReturnSomething(t *testing.T) {
	t.Parallel()
	metrics := newHistory()
	text := scrape(t, busyHub(t).url())
	metrics.hold(t, text, 10*time.Minute)
	page, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (dragoman_\w+|parallax_\w+) `).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(string(page), "`"+m[1]+"`") {
			t.Errorf("got no %s in operations.md, want every metric there", m[1])
		}
	}
	n := 0
	for _, p := range dashboard(t) {
		for _, q := range p.Targets {
			n++
			expr := variables.Replace(q.Expr)
			checkSelectors(t, metrics, expr)
			result := metrics.query(t, expr, metrics.last())
			if len(result) == 0 {
				t.Errorf("%s: %s: got nothing", p.Title, expr)
			}
			for _, label := range legendLabel.FindAllStringSubmatch(q.LegendFormat, -1) {
				for _, s := range result {
					if s.Metric.Get(label[1]) == "" {
						t.Errorf("%s: %s: got no label %s in %s, want that of the legend", p.Title, expr, label[1], s.Metric)
					}
				}
			}
		}
	}
	if n < 20 {
		t.Errorf("got %d queries, want those of the dashboard", n)
	}
	for _, r := range alertRules(t) {
		checkSelectors(t, metrics, r.Expr)
		if fired := metrics.fired(t, r); len(fired) > 0 {
			t.Errorf("%s: got it to fire with %v on a healthy hub", r.Alert, fired)
		}
	}
}

// checkSelectors checks that each selector of an expression finds a series, and that every label
// that it groups by is there.
func checkSelectors(t *testing.T, metrics *history, expr string) {
	t.Helper()
	parsed, err := parser.ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: %v", expr, err)
		return
	}
	found := map[string]bool{}
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		s, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		bare := *s
		bare.OriginalOffset, bare.Offset = 0, 0
		series := metrics.query(t, bare.String(), metrics.last())
		if len(series) == 0 {
			t.Errorf("%s: got no series for %s", expr, bare.String())
		}
		for _, one := range series {
			one.Metric.Range(func(l labels.Label) { found[l.Name] = true })
		}
		return nil
	})
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		var groups []string
		switch n := n.(type) {
		case *parser.AggregateExpr:
			groups = n.Grouping
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				groups = slices.Concat(n.VectorMatching.MatchingLabels, n.VectorMatching.Include)
			}
		}
		for _, label := range groups {
			if !found[label] {
				t.Errorf("%s: got no label %s, want those that it groups by", expr, label)
			}
		}
		return nil
	})
}
