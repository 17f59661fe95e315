package suggest_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core/suggest"
)

func TestNearestReturnsTheNameThatWasMeant(t *testing.T) {
	names := []string{"text", "children", "max_tokens", "ratio", "limits.hops", "limits.depth", "ratios", "http_addr"}
	for text, want := range map[string]string{
		"texd":                     "text",
		"chidlren":                 "children",
		"maxTokens":                "max_tokens",
		"http-addr":                "http_addr",
		"HTTP_ADR":                 "http_addr",
		"hops":                     "limits.hops",
		"hosp":                     "limits.hops",
		"limit.hops":               "limits.hops",
		"rati":                     "ratio",
		"zzzzzz":                   "",
		"":                         "",
		"ratioratios":              "",
		strings.Repeat("text", 17): "",
	} {
		if got := suggest.Nearest(text, names); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := suggest.Nearest("text", nil); got != "" {
		t.Errorf("no names: got %q, want none", got)
	}
}

func TestDistanceIsThatOfTheDefinition(t *testing.T) {
	text := rapid.StringMatching(`[abc]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		if got, want := suggest.Distance(a, b), naive(a, b); got != want {
			t.Errorf("Distance(%q, %q): got %d, want %d", a, b, got, want)
		}
	})
}

// naive tries every way to turn a into b.
func naive(a, b string) int {
	if a == "" || b == "" {
		return len(a) + len(b)
	}
	i, j := len(a)-1, len(b)-1
	replace := naive(a[:i], b[:j])
	if a[i] != b[j] {
		replace++
	}
	least := min(replace, 1+naive(a[:i], b), 1+naive(a, b[:j]))
	if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
		least = min(least, 1+naive(a[:i-1], b[:j-1]))
	}
	return least
}

func TestDistanceOfLongNamesIsBounded(t *testing.T) {
	if got := suggest.Distance(strings.Repeat("a", 5000), strings.Repeat("b", 5000)); got != 64 {
		t.Errorf("got %d, want the 64 of what is compared", got)
	}
}

func BenchmarkDistance(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		suggest.Distance("translate-german", "translator-german-2")
	}
}

func BenchmarkNearest(b *testing.B) {
	names := strings.Fields("kind text tags counts ratio open at bytes levels pair raw any")
	b.ReportAllocs()
	for b.Loop() {
		suggest.Nearest("lveels", names)
	}
}
