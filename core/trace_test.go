package core_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
)

const sampledParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestATraceparentIsReadAsW3CWritesIt(t *testing.T) {
	for parent, want := range map[string]string{
		sampledParent: sampledParent,
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00":       "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03":       "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03",
		"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-later": sampledParent,
		"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01":       sampledParent,

		"":                             "",
		"garbage":                      "",
		sampledParent + "-more":        "",
		sampledParent[:54]:             "",
		strings.ToUpper(sampledParent): "",
		"ff" + sampledParent[2:]:       "",
		"cc" + sampledParent[2:] + "x": "",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01": "",
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01": "",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g": "",
		"00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01": "",
	} {
		got := core.Trace{Parent: parent, State: "a=b", Above: "x", Tool: "y"}.Carried()
		wanted := core.Trace{}
		if want != "" {
			wanted = core.Trace{Parent: want, State: "a=b"}
		}
		if got != wanted {
			t.Errorf("%q carried: got %+v, want %+v", parent, got, wanted)
		}
	}
}

func TestATracestateThatBreaksTheRulesIsDropped(t *testing.T) {
	for state, kept := range map[string]bool{
		"": true, "a=b": true, "a=b,c=d": true, "a=b, c=d": true, "a=b,,c=d": true,
		strings.Repeat("x", 509) + "=ab":   true,
		strings.Repeat("x", 510) + "=ab":   false,
		strings.Repeat("a=b,", 31) + "a=b": true,
		strings.Repeat("a=b,", 32) + "a=b": false,
		"a":                                false, "=b": false, "a=b\n": false, "a=\u00e9": false,
	} {
		if got := (core.Trace{Parent: sampledParent, State: state}).Carried(); (got.State == state) != kept || got.Parent == "" {
			t.Errorf("%q: got %+v, want it kept: %t", state, got, kept)
		}
	}
}

func TestATraceIsTakenFromHeadersAndGivenToThem(t *testing.T) {
	in := http.Header{"Traceparent": {sampledParent}, "Tracestate": {"a=b", "c=d"}}
	got, want := core.TraceOf(in), core.Trace{Parent: sampledParent, State: "a=b,c=d"}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	out := http.Header{}
	got.Each(out.Set)
	if out.Get("traceparent") != sampledParent || out.Get("tracestate") != "a=b,c=d" {
		t.Errorf("given: got %v, want the same", out)
	}
	core.Trace{}.Each(func(key, _ string) { t.Errorf("no trace: got the key %s, want none", key) })
	if got := core.TraceOf(http.Header{"Traceparent": {sampledParent, sampledParent}}); got != (core.Trace{}) {
		t.Errorf("two traceparents: got %+v, want none", got)
	}
}

func TestATraceSaysItsIDAndWhetherItIsSampled(t *testing.T) {
	in := core.Trace{Parent: sampledParent}
	if got, want := in.TraceID(), "0af7651916cd43dd8448eb211c80319c"; got != want {
		t.Errorf("id: got %q, want %q", got, want)
	}
	if s, ok := in.Span(); !ok || !s.Sampled || s.String() != sampledParent || !in.IsSampled() {
		t.Errorf("span: got %v and %t, want it sampled and %s", s, ok, sampledParent)
	}
	for _, parent := range []string{"", "00-1-2-01"} {
		if none := (core.Trace{Parent: parent}); none.IsSampled() || none.TraceID() != "" {
			t.Errorf("%q: got a trace, want none", parent)
		}
	}
	if n := testing.AllocsPerRun(100, func() { in.Carried() }); n != 0 {
		t.Errorf("carrying a trace on: got %v allocations, want 0", n)
	}
}

// FuzzTrace carries on what anybody sends: nothing panics, and what is carried on is valid.
func FuzzTrace(f *testing.F) {
	f.Add(sampledParent, "a=b,c=d")
	f.Add("cc"+sampledParent[2:]+"-x", "")
	f.Add("00-1-2-01", "=")
	f.Fuzz(func(t *testing.T, parent, state string) {
		got := core.Trace{Parent: parent, State: state}.Carried()
		if got == (core.Trace{}) {
			return
		}
		if s, ok := got.Span(); !ok || len(got.Parent) != len(sampledParent) || got.Parent[:53] != s.String()[:53] || len(got.State) > 512 || got.Carried() != got {
			t.Errorf("%q %q: carried on as %+v, want what is valid", parent, state, got)
		}
	})
}
