package main

import (
	"slices"
	"strings"
	"testing"
)

func TestRowsOfTheBenchAreChosenByName(t *testing.T) {
	names := func(patterns ...string) []string {
		t.Helper()
		rows, err := chooseRows(patterns)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, r := range rows {
			all = append(all, r.Name)
		}
		return all
	}
	for _, tt := range []struct{ patterns, want string }{
		{"", "start single parallel burst clients-64 idle"},
		{"burst single", "single burst"},
		{"pair-rest-*-64", "pair-rest-acp-64 pair-rest-coven-64 pair-rest-native-64 pair-rest-parallax-64"},
		{"open-*", "open-rest-coven open-acp-acp open-pi-coven"},
		{"crowd-* memory", "crowd-id crowd-any crowd-capability crowd-unknown memory"},
	} {
		if got := strings.Join(names(strings.Fields(tt.patterns)...), " "); got != tt.want {
			t.Errorf("--rows %s: got %s, want %s", tt.patterns, got, tt.want)
		}
	}
	all := names("all")
	if slices.Sort(all); len(slices.Compact(slices.Clone(all))) != len(all) || len(all) != len(allRows()) {
		t.Errorf("all rows: got %v, want each of %d once", all, len(allRows()))
	}
	for _, wrong := range []string{"sing", "pair-[", "pair-*-grpc-*"} {
		if _, err := chooseRows([]string{"single", wrong}); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("--rows %s: got %v, want an error that names it", wrong, err)
		}
	}
}
