package main

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestRowsOfTheBenchAreChosenByName(t *testing.T) {
	names := func(patterns ...string) []string {
		t.Helper()
		rows, err := chooseBenchRows(patterns)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, r := range rows {
			all = append(all, r.name)
		}
		return all
	}
	for _, tt := range []struct{ patterns, want string }{
		{"", "start single parallel burst clients-64 idle"},
		{"burst single", "single burst"},
		{"pair-rest-*-64", "pair-rest-acp-64 pair-rest-coven-64 pair-rest-parallax-64"},
		{"crowd-* memory", "crowd-id crowd-any crowd-capability crowd-unknown memory"},
	} {
		if got := strings.Join(names(strings.Fields(tt.patterns)...), " "); got != tt.want {
			t.Errorf("--rows %s: got %s, want %s", tt.patterns, got, tt.want)
		}
	}
	all := names("all")
	if slices.Sort(all); len(slices.Compact(slices.Clone(all))) != len(all) || len(all) != len(benchRows()) {
		t.Errorf("all rows: got %v, want each of %d once", all, len(benchRows()))
	}
	for _, wrong := range []string{"sing", "pair-[", "pair-*-grpc-*"} {
		if _, err := chooseBenchRows([]string{"single", wrong}); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("--rows %s: got %v, want an error that names it", wrong, err)
		}
	}
}

// Hub and relay answer every byte, for every pair; a row that did not would fail.
func TestTheRowsOfTheBenchMeasureBothSides(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := program(t, "bench", "--json", "--rounds", "1", "--time", "20ms", "--crowd", "20", "--base-binary", self, "--rows",
		"clients-16,crowd-any,crowd-unknown,thread-acp,pair-*-1")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("got %v: %s", err, said.String())
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
	if len(result.Rows) != 1+2+1+15 {
		t.Errorf("got %d rows, want 19", len(result.Rows))
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
