package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

// The hub and the relay answer every byte, for every pair; a row that does not fails.
func TestTheRowsOfTheBenchMeasureBothSides(t *testing.T) {
	tier.Full(t, "it measures for 10 s")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := program(t, "bench", "--json", "--rounds", "1", "--time", "20ms", "--crowd", "20", "--base-binary", self, "--rows",
		"clients-16,crowd-any,crowd-unknown,thread-acp,pair-*-1")
	var printed bytes.Buffer
	cmd.Stderr = &printed
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("got %v: %s", err, printed.String())
	}
	var result struct {
		Rows []struct {
			Name  string
			Sides []struct {
				Name string
				Took struct{ N int }
				Rate float64
			}
		}
	}
	if err := json.Unmarshal(out, &result); err != nil {
		t.Fatalf("got %v, want JSON: %s", err, out)
	}
	if want := 1 + 2 + 1 + 6*4; len(result.Rows) != want { // 6 requesters ask 4 agents
		t.Errorf("got %d rows, want %d", len(result.Rows), want)
	}
	for _, row := range result.Rows {
		var sides []string
		for _, s := range row.Sides {
			sides = append(sides, s.Name)
			if s.Took.N == 0 || s.Rate <= 0 {
				t.Errorf("%s: the %s: got %d answers at %.0f a second, want some", row.Name, s.Name, s.Took.N, s.Rate)
			}
		}
		want := "hub base relay"
		switch {
		case strings.HasPrefix(row.Name, "crowd-"):
			want = "hub base few"
		case strings.HasPrefix(row.Name, "thread-"):
			want = "hub base hub, first question base, first question"
		}
		if got := strings.Join(sides, " "); got != want {
			t.Errorf("%s: got the sides %s, want %s", row.Name, got, want)
		}
	}
}
