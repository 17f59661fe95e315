package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestABenchThatWouldMeasureNothingIsAUsageError(t *testing.T) {
	for _, arg := range []string{
		"-rounds=0", "-time=0s", "-time=-1s", "-agents=-1", "-crowd=0", "-hub-env=X", "-hub-env==x", "-base-binary=/nope", "-hub-binary=/nope",
		"-rows=none", "-rows=[", "--time=soon", "single",
	} {
		var out, log bytes.Buffer
		code := run([]string{arg}, &out, &log)
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if code != exitUsage || !strings.Contains(log.String(), name) || out.Len() > 0 {
			t.Errorf("%s: got %d, %q and %q, want %d and the flag named", arg, code, &out, &log, exitUsage)
		}
	}
}

func TestTheUsageListsEveryRow(t *testing.T) {
	var out, log bytes.Buffer
	if code := run([]string{"-help"}, &out, &log); code != 0 {
		t.Errorf("got %d, want 0", code)
	}
	for _, row := range allRows() {
		if !strings.HasPrefix(row.Name, "pair-") && !strings.Contains(log.String(), row.About) {
			t.Errorf("got %s, want %s in it", &log, row.Name)
		}
	}
}
