package parallax

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

func TestThePageHasEveryCodeOfATaskErrorAndWhatItIsAtTheHub(t *testing.T) {
	got, sent := map[string]core.Code{}, map[core.Code]string{}
	for _, row := range tableOfPage(t, "| code of the agent | at the hub |") {
		own, neutral := quotedIn(row[0]), quotedIn(row[1])
		if strings.Contains(row[1], "ends as cancelled") {
			neutral = []string{string(core.CodeCancelled)}
		}
		for i, code := range own {
			n := neutral[min(i, len(neutral)-1)]
			got[code] = core.Code(n)
			if i == 0 || len(neutral) > 1 {
				sent[core.Code(n)] = code
			}
		}
	}
	if diff := cmp.Diff(faultCodes, got); diff != "" {
		t.Errorf("what codes are at the hub (-code +page):\n%s", diff)
	}
	if diff := cmp.Diff(codes, sent); diff != "" {
		t.Errorf("what the hub sends (-code +page):\n%s", diff)
	}
}

func TestThePageHasEveryErrorAndWhichAreFatal(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
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
	want := map[string]string{codes[core.CodeTimeout]: "yes", codeInvalidSignature: "of `register`", codeSignatureRequired: "of `register`"}
	for _, m := range regexp.MustCompile(`s\.(refuse|fail)\(ctx, [^,]+, (code\w+|Replaced),`).FindAllStringSubmatch(code.String(), -1) {
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
