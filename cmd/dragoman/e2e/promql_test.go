package e2e

import (
	"context"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	prom "github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// scrapeEvery is the interval of Prometheus in the tests.
const scrapeEvery = 15 * time.Second

// scrape reads the metrics of a hub.
func scrape(t *testing.T, hub string) string {
	t.Helper()
	status, text := scrapeAs(t, hub, "")
	if status != http.StatusOK {
		t.Fatalf("/metrics: got %d and %s, want the metrics", status, text)
	}
	return text
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

// history is what a Prometheus has that scrapes one hub. What the hub said is real, the time is
// not: the engine of Prometheus reads a hub that stays as it is for half an hour.
type history struct {
	now    time.Time
	began  time.Time
	all    map[string]*timeline
	engine *promql.Engine
}

// timeline is one series.
type timeline struct {
	labels  labels.Labels
	samples []chunks.Sample
}

func newHistory() *history {
	began := time.Unix(1_700_000_000, 0)
	return &history{now: began, began: began, all: map[string]*timeline{}, engine: promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1 << 20, Timeout: time.Minute, LookbackDelta: 5 * time.Minute,
	})}
}

// hold has the hub say the same in every scrape for a time. With "" it does not answer.
func (h *history) hold(t *testing.T, metrics string, d time.Duration) {
	t.Helper()
	parser := expfmt.NewTextParser(prom.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(metrics))
	if err != nil {
		t.Fatalf("the metrics: %v", err)
	}
	said := map[string]float64{}
	add := func(metric map[string]string, v float64) {
		metric["job"], metric["instance"] = "dragoman", "hub:8080"
		l := labels.FromMap(metric)
		said[l.String()] = v
		if h.all[l.String()] == nil {
			h.all[l.String()] = &timeline{labels: l}
		}
	}
	for name, f := range families {
		if strings.HasPrefix(name, "go_") {
			continue // no query reads those of Go
		}
		samples, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{}, f)
		if err != nil {
			t.Fatalf("the metrics: %v", err)
		}
		for _, s := range samples {
			metric := map[string]string{}
			for name, v := range s.Metric {
				metric[string(name)] = string(v)
			}
			add(metric, float64(s.Value))
		}
	}
	up := map[bool]float64{true: 1, false: 0}[metrics != ""]
	add(map[string]string{prom.MetricNameLabel: "up"}, up)
	for end := h.now.Add(d); !h.now.After(end); h.now = h.now.Add(scrapeEvery) {
		for key, series := range h.all {
			v, ok := said[key]
			if !ok {
				v = math.Float64frombits(value.StaleNaN) // Prometheus notes that it is gone
			}
			series.samples = append(series.samples, sample{h.now.UnixMilli(), v})
		}
	}
}

// query evaluates an expression as of a time.
func (h *history) query(t *testing.T, expr string, at time.Time) promql.Vector {
	t.Helper()
	q, err := h.engine.NewInstantQuery(t.Context(), h, promql.NewPrometheusQueryOpts(false, 0), expr, at)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	defer q.Close()
	result := q.Exec(t.Context())
	if len(result.Warnings) > 0 {
		t.Errorf("%s: got the warnings %v, want none", expr, result.Warnings)
	}
	v, err := result.Vector()
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	return slices.Clone(v)
}

// last returns the time of the last scrape.
func (h *history) last() time.Time { return h.now.Add(-scrapeEvery) }

// fired returns the labels with which a rule has fired at some time: its expression was true for
// as long as the rule says.
func (h *history) fired(t *testing.T, r rulefmt.Rule) (fired []map[string]string) {
	t.Helper()
	since, told := map[string]time.Time{}, map[string]bool{}
	for at := h.began; !at.After(h.last()); at = at.Add(scrapeEvery) {
		active := map[string]time.Time{}
		for _, s := range h.query(t, r.Expr, at) {
			key := s.Metric.String()
			active[key] = at
			if first, ok := since[key]; ok {
				active[key] = first
			}
			if at.Sub(active[key]) >= time.Duration(r.For) && !told[key] {
				told[key] = true
				fired = append(fired, s.Metric.Map())
			}
		}
		since = active
	}
	return fired
}

// Querier implements storage.Queryable.
func (h *history) Querier(int64, int64) (storage.Querier, error) { return querier{h}, nil }

type querier struct{ *history }

// Select implements storage.Querier.
func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	set := &seriesSet{}
	for _, s := range q.all {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.labels.Get(m.Name)) }) {
			set.all = append(set.all, storage.NewListSeries(s.labels, s.samples))
		}
	}
	slices.SortFunc(set.all, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return set
}

// LabelValues implements storage.LabelQuerier.
func (q querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// LabelNames implements storage.LabelQuerier.
func (q querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// Close implements storage.LabelQuerier.
func (q querier) Close() error { return nil }

// seriesSet is a storage.SeriesSet.
type seriesSet struct {
	all []storage.Series
	n   int
}

func (s *seriesSet) Next() bool                        { s.n++; return s.n <= len(s.all) }
func (s *seriesSet) At() storage.Series                { return s.all[s.n-1] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// sample is a chunks.Sample.
type sample struct {
	at int64
	v  float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) F() float64                    { return s.v }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }
