package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// The page and the commands write letters that cannot be seen by one table: the commands in
// cmd/dragoman/internal/command, the page here.
func TestThePageShowsHiddenLettersAsTheTableSays(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "hidden_letters.json"))
	if err != nil {
		t.Fatal(err)
	}
	var table []struct{ Text, Page string }
	if err := json.Unmarshal(text, &table); err != nil || len(table) < 20 {
		t.Fatalf("got %d lines and %v, want the table", len(table), err)
	}
	h := newTestHub(t, nil)
	p := newBrowser(t, h.url()).open("/#/waiting")
	p.shows("h1", "Waiting")
	for _, line := range table {
		want := line.Page
		if want == "" {
			want = line.Text
		}
		if got := p.await(`import('/console/letters.js').then((m) => 'text: ' + m.visible(` + string(plainJSON(line.Text)) + `))`); got != "text: "+want {
			t.Errorf("%+q: got %+q, want %+q", line.Text, got, want)
		}
	}
	// JSON is indented and otherwise what it was.
	for in, want := range map[string]string{
		`{"a":[1,2.50,1e400],"a":{},"b":[ ],"s":"{\\\"x,:[]"}`: "{\n  \"a\": [\n    1,\n    2.50,\n    1e400\n  ],\n  \"a\": {},\n  \"b\": [],\n  \"s\": \"{\\\\\\\"x,:[]\"\n}",
		`no JSON {`: `no JSON {`, `"text"`: `"text"`, `{"open":`: `{"open":`, ` [ ] `: `[]`,
	} {
		if got := p.await(`import('/console/letters.js').then((m) => 'text: ' + m.indent(` + string(plainJSON(in)) + `))`); got != "text: "+want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
