package parallax_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// tableOfPage returns the rows of the table of our page that has a head.
func tableOfPage(t *testing.T, head string) (rows [][]string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/dialects/parallax.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), head+"\n")
	if !found {
		t.Fatalf("the page has no table %s", head)
	}
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		if cells := strings.Split(strings.Trim(line, "|\n"), "|"); !strings.HasPrefix(cells[0], "---") {
			rows = append(rows, cells)
		}
	}
	return rows
}

var codeInQuotes = regexp.MustCompile("`([A-Za-z_]+)`")

func quotedIn(cell string) (all []string) {
	for _, m := range codeInQuotes.FindAllStringSubmatch(cell, -1) {
		all = append(all, m[1])
	}
	return all
}

func TestThePageHasEveryErrorAndWhichAreFatal(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	codec, err := filepath.Glob("wire/*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, codec...)
	var code strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(f, "_test.go") {
			code.Write(text)
		}
	}
	named := map[string]string{}
	for _, m := range regexp.MustCompile(`(\w+)\s+= "([A-Z_]+)"\n`).FindAllStringSubmatch(code.String(), -1) {
		named[m[1]] = m[2]
	}
	// What is told in the words of a Fault or by a verdict on a signature is not by name.
	want := map[string]string{wire.CodeOf(core.NewFault(core.CodeTimeout, "")): "yes", wire.CodeInvalidSignature: "of `register`", wire.CodeSignatureRequired: "of `register`"}
	for _, m := range regexp.MustCompile(`s\.(refuse|fail)\(ctx, [^,]+, wire\.(Code\w+|Replaced),`).FindAllStringSubmatch(code.String(), -1) {
		want[named[m[2]]] = map[string]string{"refuse": "no", "fail": "yes"}[m[1]]
	}
	got := map[string]string{}
	for _, row := range tableOfPage(t, "| code | when | fatal |") {
		for _, code := range quotedIn(row[0]) {
			got[code] = strings.TrimSpace(row[2])
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors (-code +page):\n%s", diff)
	}
}
