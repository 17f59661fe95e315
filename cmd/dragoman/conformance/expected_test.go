package conformance

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const (
	// expectedFile lists what is expected to fail.
	expectedFile = "testdata/expected.yaml"
	// page tells readers of it.
	page = root + "/docs/conformance.md"
)

// expectation is a reason, and the tests of a suite that fail for it.
type expectation struct {
	Reason string
	Tests  []string
}

// result is what became of a test of a suite.
type result struct {
	passed  bool
	skipped bool   // by the suite, which says why itself
	why     string // it failed
}

// expectations returns what is expected to fail, by suite.
func expectations(t *testing.T) map[string][]expectation {
	t.Helper()
	text, err := os.ReadFile(expectedFile)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string][]expectation
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	d.KnownFields(true)
	if err := d.Decode(&all); err != nil {
		t.Fatalf("%s: %v", expectedFile, err)
	}
	return all
}

// compare returns what is wrong with the results of a suite, in the order of the tests.
func compare(expected []expectation, results map[string]result) []string {
	var wrong []string
	listed := map[string]bool{}
	for _, e := range expected {
		for _, test := range e.Tests {
			r, ran := results[test]
			switch {
			case listed[test]:
				wrong = append(wrong, test+": it is on the list twice")
			case !ran:
				wrong = append(wrong, test+": the suite has no such test: take it off "+expectedFile)
			case r.passed || r.skipped:
				wrong = append(wrong, test+": it does not fail any more: take it off "+expectedFile)
			}
			listed[test] = true
		}
	}
	for test, r := range results {
		if !r.passed && !r.skipped && !listed[test] {
			wrong = append(wrong, fmt.Sprintf("%s: %s", test, r.why))
		}
	}
	slices.Sort(wrong)
	return wrong
}

// judge fails the test unless exactly what is expected of a suite to fail has failed, and the page
// has the figures: a suite that lost some of its tests would pass otherwise.
func judge(t *testing.T, suite string, results map[string]result) {
	t.Helper()
	for _, w := range compare(expectations(t)[suite], results) {
		t.Errorf("%s: %s", suite, w)
	}
	passed, failed, skipped := 0, 0, 0
	for _, r := range results {
		switch {
		case r.skipped:
			skipped++
		case r.passed:
			passed++
		default:
			failed++
		}
	}
	figures := fmt.Sprintf("| %d of %d | %d | %d |", passed, len(results), failed, skipped)
	t.Logf("%s: %d of %d pass, %d fail, %d are skipped by the suite", suite, passed, len(results), failed, skipped)
	for line := range strings.Lines(readPage(t)) {
		if strings.HasPrefix(line, "| "+suite+" | ") && strings.HasSuffix(line, figures+"\n") {
			return
		}
	}
	t.Errorf("docs/conformance.md lacks a row of %s that ends with %s", suite, figures)
}

func readPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheListOfExpectedFailuresMustShrink(t *testing.T) {
	list := []expectation{{"no prompts", []string{"a", "b"}}, {"no luck", []string{"c"}}}
	for name, c := range map[string]struct {
		results map[string]result
		want    []string
	}{
		"as expected":   {map[string]result{"a": {}, "b": {}, "c": {}, "d": {passed: true}}, nil},
		"another fails": {map[string]result{"a": {}, "b": {}, "c": {}, "d": {why: "got 1, want 2"}}, []string{"d: got 1, want 2"}},
		"one passes":    {map[string]result{"a": {passed: true}, "b": {}, "c": {}}, []string{"a: it does not fail any more: take it off " + expectedFile}},
		"one is gone":   {map[string]result{"a": {}, "b": {}}, []string{"c: the suite has no such test: take it off " + expectedFile}},
	} {
		if got := compare(list, c.results); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	if got := compare([]expectation{{"", []string{"a", "a"}}}, map[string]result{"a": {}}); len(got) != 1 {
		t.Errorf("listed twice: got %q, want that it is", got)
	}
}

func TestThePageHasEveryExpectedFailure(t *testing.T) {
	all, text := expectations(t), readPage(t)
	for _, suite := range slices.Sorted(maps.Keys(all)) {
		for _, e := range all[suite] {
			if e.Reason == "" || len(e.Tests) == 0 {
				t.Errorf("%s: got %+v, want a reason and tests", expectedFile, e)
			}
			if row := fmt.Sprintf("| %s | %d | %s |", suite, len(e.Tests), e.Reason); !strings.Contains(text, row) {
				t.Errorf("docs/conformance.md lacks the row\n%s", row)
			}
		}
	}
}
