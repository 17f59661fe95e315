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

// tableOfPage returns the rows of the table with a head in docs/dialects/parallax.md.
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

// source returns the Go source of the session and of the codec.
func source(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range []string{"*.go", "wire/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(f, "_test.go") {
				all.Write(text)
			}
		}
	}
	return all.String()
}

func TestThePageListsEveryError(t *testing.T) {
	code, named := source(t), map[string]string{}
	for _, m := range regexp.MustCompile(`(\w+)\s+= "([A-Z_]+)"\n`).FindAllStringSubmatch(code, -1) {
		named[m[1]] = m[2]
	}
	// These codes are not literals in a call: they come from a Fault or checkSignature.
	want := map[string]string{wire.CodeOf(core.NewFault(core.CodeTimeout, "")): "yes", wire.CodeOf(core.NewFault(core.CodeOverloaded, "")): "of `register`", wire.CodeInvalidSignature: "of `register`", wire.CodeSignatureRequired: "of `register`"}
	for _, m := range regexp.MustCompile(`s\.(refuse|fail)\(ctx, [^,]+, wire\.(Code\w+|Replaced),`).FindAllStringSubmatch(code, -1) {
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

func TestThePageListsEveryCode(t *testing.T) {
	want, wantSent := map[string]core.Code{}, map[core.Code]string{}
	for _, m := range regexp.MustCompile(`"([A-Z_]{4,})"`).FindAllStringSubmatch(source(t), -1) {
		code := wire.TaskError{Error: wire.ErrorDetail{Code: m[1]}}.Fault().Code
		if code != core.CodeInternal || m[1] == wire.CodeProcessing || m[1] == "INTERNAL_ERROR" {
			want[m[1]] = code
		}
	}
	for _, code := range core.Codes() {
		wantSent[code] = wire.CodeOf(core.NewFault(code, ""))
	}
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
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("codes at the hub (-code +page):\n%s", diff)
	}
	if diff := cmp.Diff(wantSent, sent); diff != "" {
		t.Errorf("codes of the hub (-code +page):\n%s", diff)
	}
}
