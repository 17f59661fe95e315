package trace_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/trace"
)

func TestALineAboutATaskHasTheIDOfItsTrace(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(trace.LogHandler(slog.NewTextHandler(&out, nil), func(id core.TaskID) string {
		return map[core.TaskID]string{"t1": "0af7"}[id]
	}))
	for name, tt := range map[string]struct {
		write func()
		has   bool
	}{
		"a task":                     {func() { log.Info("x", "agent", "a", "task", core.TaskID("t1")) }, true},
		"a task of the logger":       {func() { log.With("task", "t1").Info("x", "agent", "a") }, true},
		"a task that is in no trace": {func() { log.Info("x", "task", core.TaskID("t2")) }, false},
		"no task":                    {func() { log.Info("x", "agent", "t1") }, false},
	} {
		out.Reset()
		tt.write()
		if got := strings.Contains(out.String(), "trace_id=0af7"); got != tt.has {
			t.Errorf("%s: got %q, want a trace_id: %t", name, out.String(), tt.has)
		}
	}
}
