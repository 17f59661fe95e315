package main_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// kinds are the four kinds of pages, by the headings of the index.
var kinds = []string{"Tutorial", "How-to guides", "Reference", "Explanation"}

// entry matches a line of the index: a link and a sentence.
var entry = regexp.MustCompile(`^- \[[^\]]+\]\(([^)#]+)\): .+\.$`)

func TestRepositoryListsEveryPageUnderOneKind(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(docs, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed, kind, found := map[string]string{}, "", []string{}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			kind = heading
			found = append(found, kind)
		}
		m := entry.FindStringSubmatch(line)
		if m == nil {
			if strings.HasPrefix(line, "- ") {
				t.Errorf("got the line %q, want a link and a sentence", line)
			}
			continue
		}
		if before := listed[m[1]]; before != "" {
			t.Errorf("%s is listed as %s and as %s, want one kind", m[1], before, kind)
		}
		listed[m[1]] = kind
	}
	if !slices.Equal(found, kinds) {
		t.Errorf("got the headings %q, want %q", found, kinds)
	}
	err = filepath.WalkDir(docs, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(docs, path)
		switch {
		case err != nil:
			return err
		case filepath.Ext(path) != ".md", name == "README.md":
			return nil
		case filepath.Dir(name) == "adr" && name != "adr/README.md": // that lists them
			return nil
		}
		if kind := listed[filepath.ToSlash(name)]; kind == "" {
			t.Errorf("docs/%s is not listed in docs/README.md: add a line under one of %q", name, kinds)
		} else if strings.HasPrefix(name, "howto") != (kind == "How-to guides") {
			t.Errorf("docs/%s is listed under %s", name, kind)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestEveryDecisionIsListed(t *testing.T) {
	const dir = "../../docs/adr"
	index, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	records, err := filepath.Glob(filepath.Join(dir, "0*.md"))
	if err != nil || len(records) == 0 {
		t.Fatalf("got %d records and %v, want all", len(records), err)
	}
	for _, path := range records {
		name := filepath.Base(path)
		if row := "| [" + name[:4] + "](" + name + ") | "; !strings.Contains(string(index), row) {
			t.Errorf("docs/adr/README.md lacks %q", row)
		}
	}
}
