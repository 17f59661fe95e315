package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// exposition is what a hub said in a scrape: the values of its series, by their names with labels.
type exposition map[string]float64

var seriesLine = regexp.MustCompile(`(?m)^([a-z]\w*)(?:\{(.*)\})? (\S+)$`)

// scrape reads the metrics of a hub.
func scrape(t *testing.T, hub string) exposition {
	t.Helper()
	status, text := scrapeAs(t, hub, "")
	if status != http.StatusOK {
		t.Fatalf("/metrics: got %d and %s, want the metrics", status, text)
	}
	return parseExposition(t, text)
}

// scrapeAs reads them with a token, if it is not "".
func scrapeAs(t *testing.T, hub, token string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, hub+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// parseExposition reads all series but those of Go, with the labels that Prometheus adds.
func parseExposition(t *testing.T, text string) exposition {
	t.Helper()
	said := exposition{}
	for _, m := range seriesLine.FindAllStringSubmatch(text, -1) {
		if strings.HasPrefix(m[1], "go_") {
			continue
		}
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			t.Fatalf("the metrics: %s: %v", m[0], err)
		}
		said[seriesName(m[1], m[2])] = v
	}
	return said
}

// seriesName is a metric with its labels and those that Prometheus adds.
func seriesName(metric, labels string) string {
	if labels != "" {
		labels += ","
	}
	return metric + "{" + labels + `instance="hub:8080",job="dragoman"}`
}

// sum returns the sum of the series of a metric that have all the labels, each as name="value".
func (e exposition) sum(metric string, labels ...string) (sum float64) {
	for name, v := range e {
		if strings.HasPrefix(name, metric+"{") && hasAll(name, labels) {
			sum += v
		}
	}
	return sum
}

func hasAll(series string, labels []string) bool {
	for _, label := range labels {
		if !strings.Contains(series, "{"+label+",") && !strings.Contains(series, ","+label+",") {
			return false
		}
	}
	return true
}

// scrapeEvery is the interval of Prometheus in the tests.
const scrapeEvery = 15 * time.Second

// history is what a Prometheus has that scrapes one hub. What the hub said is real, the time is
// not: it stays as it is for half an hour.
type history struct {
	scrapes int
	values  map[string]*strings.Builder // as promtool reads them
	last    exposition
}

func newHistory() *history { return &history{values: map[string]*strings.Builder{}} }

// hold has the hub say the same in every scrape for a time. With nil it does not answer.
func (h *history) hold(said exposition, d time.Duration) {
	up := exposition{seriesName("up", ""): 0}
	if said != nil {
		up[seriesName("up", "")] = 1
	}
	n := max(1, int(d/scrapeEvery))
	now := exposition{}
	for _, from := range []exposition{said, up} {
		for name, v := range from {
			now[name] = v
			if h.values[name] == nil {
				h.values[name] = &strings.Builder{}
				if h.scrapes > 0 {
					fmt.Fprintf(h.values[name], "_x%d ", h.scrapes)
				}
			}
			fmt.Fprintf(h.values[name], "%s+0x%d ", strconv.FormatFloat(v, 'f', -1, 64), n-1)
		}
	}
	for name := range h.values {
		if _, ok := now[name]; !ok { // Prometheus notes that it is gone
			h.values[name].WriteString(strings.Repeat("stale ", n))
		}
	}
	h.scrapes, h.last = h.scrapes+n, now
}

// expectation is an expression and whether it returns something at the end of a history.
type expectation struct {
	expr string
	want bool
}

// fires is the expectation that a rule fires at some time of the history, or at none.
func fires(alert string, want bool) expectation {
	return expectation{fmt.Sprintf(`max_over_time(ALERTS{alertname=%q, alertstate="firing"}[3h])`, alert), want}
}

// check evaluates the alert rules and the expectations on the history, by promtool.
func (h *history) check(t *testing.T, promtool string, all []expectation) {
	t.Helper()
	type object = map[string]any
	var series, exprs []object
	for name, values := range h.values {
		series = append(series, object{"series": name, "values": strings.TrimSpace(values.String())})
	}
	for _, e := range all {
		want := 0
		if e.want {
			want = 1
		}
		exprs = append(exprs, object{
			"expr": "count(" + e.expr + ") > bool 0 or vector(0)", "eval_time": (time.Duration(h.scrapes-1) * scrapeEvery).String(),
			"exp_samples": []object{{"labels": "{}", "value": want}},
		})
	}
	rules, err := filepath.Abs(observability + "dragoman-alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(object{
		"rule_files": []string{rules}, "evaluation_interval": scrapeEvery.String(),
		"tests": []object{{"interval": scrapeEvery.String(), "input_series": series, "promql_expr_test": exprs}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "history.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(promtool, "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool test rules: %v\n%s", err, out)
	}
}

// needPromtool returns the path of promtool: that of the machine, else that of Debian's package
// prometheus, unpacked into a directory of the test.
func needPromtool(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("promtool"); err == nil {
		return path
	}
	needs(t, "apt-get", "dpkg-deb")
	dir := t.TempDir()
	installDebian(t, dir, "prometheus")
	return filepath.Join(dir, "usr/bin/promtool")
}
