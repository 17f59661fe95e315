package command

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// The page of the console has the same rule, by the same table.
func TestHiddenLettersAreShownAsTheTableSays(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "e2e", "testdata", "hidden_letters.json"))
	if err != nil {
		t.Fatal(err)
	}
	var table []struct{ Text, Program string }
	if err := json.Unmarshal(text, &table); err != nil || len(table) < 20 {
		t.Fatalf("got %d lines and %v, want the table", len(table), err)
	}
	for _, line := range table {
		if got := visibleLines(line.Text); got != cmp.Or(line.Program, line.Text) {
			t.Errorf("%+q: got %+q, want %+q", line.Text, got, cmp.Or(line.Program, line.Text))
		}
	}
}
