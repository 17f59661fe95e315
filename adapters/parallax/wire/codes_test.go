package wire

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
)

// tableOfCodes returns the rows of the table of our page that has a head.
func tableOfCodes(t *testing.T, head string) (rows [][]string) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/dialects/parallax.md")
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

var quotedCode = regexp.MustCompile("`([A-Za-z_]+)`")

func inQuotes(cell string) (all []string) {
	for _, m := range quotedCode.FindAllStringSubmatch(cell, -1) {
		all = append(all, m[1])
	}
	return all
}

func TestThePageHasEveryCodeOfATaskErrorAndWhatItIsAtTheHub(t *testing.T) {
	got, sent := map[string]core.Code{}, map[core.Code]string{}
	for _, row := range tableOfCodes(t, "| code of the agent | at the hub |") {
		own, neutral := inQuotes(row[0]), inQuotes(row[1])
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
