package service

import (
	"os"
	"strings"
	"testing"
)

// Who rotates a secret has to know which files a running hub reads again.
func TestThePageTellsWhatARunningHubTakesOver(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, told, _ := strings.Cut(string(page), "Taken over at once are")
	told, _, _ = strings.Cut(told, "What else changed")
	for _, setting := range live {
		if !strings.Contains(told, "`"+setting+"`") {
			t.Errorf("docs/operations.md: got %q, want %s in what SIGHUP takes over", told, setting)
		}
	}
}
