package command_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	hubpack "github.com/dragoman-hub/dragoman/core/pack"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// provides connects a pack, which executes its calls with do until the test ends.
func provides(t *testing.T, h *hub.Hub, id string, tools []tool.Definition, do func(*hub.Session, *hubpack.Execution) tool.Result) {
	t.Helper()
	s := h.Connect(hub.Identity{Principal: core.Principal{ID: id}, Dialect: "test"})
	if err := s.Provide(id, tools); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			b, err := s.Next(context.Background())
			if err != nil {
				return
			}
			if b.Execute != nil {
				_ = s.AnswerTool(b.Execute.ID, do(s, b.Execute)) // nobody may wait any more
			}
		}
	}()
	t.Cleanup(func() {
		s.Close(nil)
		<-ended
	})
}

func TestAToolIsCalledAndItsResultPrinted(t *testing.T) {
	h, at := served(t)
	schema := json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","x-mcp-header":"Path"}}}`)
	provides(t, h, "files", []tool.Definition{{Name: "files.read", InputSchema: schema}, {Name: "files.fail"}}, func(_ *hub.Session, e *hubpack.Execution) tool.Result {
		if e.Tool == "files.fail" {
			return tool.Result{Fault: core.NewFault(core.CodeInternal, "the disk\nis gone")}
		}
		return tool.Result{Output: []byte(`"read: ` + strings.ReplaceAll(string(e.Input), `"`, `'`) + `"`)}
	})
	at = "--hub=" + at
	for _, tt := range []struct {
		args, stdin string
		code        int
		out, stderr string
	}{
		{args: "files.read", out: "read: {}\n"},
		{args: `files.read {"path":"a"}`, out: "read: {'path':'a'}\n"},
		{args: `files.read -`, stdin: `{"path":"b"}`, out: "read: {'path':'b'}\n"},
		{args: `files.read @-`, stdin: `{"path":"c"}`, out: "read: {'path':'c'}\n"},
		{args: "files.fail", code: command.ExitFailed, stderr: "dragoman: internal: the disk; is gone"},
		{args: `files.read {"path":7}`, code: command.ExitFailed, stderr: "path"},
		{args: `files.raed`, code: command.ExitFailed, stderr: "dragoman: pack files has no tool files.raed: did you mean files.read?\n"},
		{args: `files.x`, code: command.ExitFailed, stderr: "dragoman: pack files has no tool files.x: there is files.fail, files.read\n"},
		{args: `disks.read`, code: command.ExitFailed, stderr: "dragoman: no pack disks is here: there is files\n"},
		{args: `files`, code: command.ExitFailed, stderr: "dragoman: pack files has no tool files: there is files.fail, files.read\n"},
		{args: `files.read [1]`, code: command.ExitUsage, stderr: "dragoman: JSON is no object: "},
		{args: `files.read {`, code: command.ExitUsage, stderr: "dragoman: JSON is not JSON: "},
	} {
		code, out, stderr := runWith(t, tt.stdin, append(strings.Fields("call "+tt.args), at)...)
		if code != tt.code || out != tt.out || !strings.Contains(stderr, tt.stderr) || tt.stderr == "" && stderr != "" {
			t.Errorf("call %s: got %d, %q and %q, want %d, %q and %q", tt.args, code, out, stderr, tt.code, tt.out, tt.stderr)
		}
	}
	for args, want := range map[string]int{"files.read": command.ExitDone, "files.fail": command.ExitFailed} {
		code, out, _ := run(t, "call", args, "-o", "json", at)
		var result struct {
			Content []struct{ Type, Text string }
			IsError bool
		}
		if err := json.Unmarshal([]byte(out), &result); err != nil || code != want || len(result.Content) != 1 || result.IsError != (want != command.ExitDone) {
			t.Errorf("call %s -o json: got %d, %s and %v, want %d and the whole result", args, code, out, err, want)
		}
	}
}
