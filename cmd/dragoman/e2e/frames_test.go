package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/native"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func keepFrames(c *config.Config) { c.Frames.Keep = 1 << 20 }

// A question crosses two dialects: what each side sent and got, and what each frame became, is as in
// testdata/frames.
func TestTheFramesOfATaskShowBothDialects(t *testing.T) {
	for _, pair := range []struct {
		asks    *clientDialect
		answers string
	}{
		{piOverWebSocket(), coven.Name},
		{piOverWebSocket(), parallax.Dialect},
		{acpOverWebSocket(), coven.Name},
		{nativeOverWebSocket(), parallax.Dialect},
		{editorOverWebSocket(), native.Dialect},
		{parallaxByExtension(), coven.Name},
		{covenByTools(), native.Dialect},
		{overREST(), coven.Name},
		{overMCP(), parallax.Dialect},
		{overA2A(true), acp.Dialect},
		{overA2A(false), native.Dialect},
		{acpOverHTTP(), gatewayName},
	} {
		t.Run(pair.asks.name+" asks "+pair.answers, func(t *testing.T) {
			h := newTestHub(t, keepFrames)
			h.startAgentWith(t, pair.answers, "guide", h.reportEverything)
			h.await(t, "joined guide")
			asker := pair.asks.connect(t, h, "asker")
			t.Cleanup(asker.leave)
			asker.begin(query{to: "guide", content: "look it up"}).wait(t)
			h.wantFrames(t, pair.asks.name+"-"+pair.answers)
		})
	}
}

// wantFrames compares the frames of the task of the guide with testdata/frames. It waits for the last ones: the
// requester may know of the end of a task before the connection of the agent has noted what its frame became.
func (h *testHub) wantFrames(t *testing.T, name string) {
	t.Helper()
	path, id := filepath.Join("testdata", "frames", strings.ReplaceAll(name, " ", "-")+".txt"), h.taskOf(t, "guide")
	golden, _ := os.ReadFile(path) // wantGolden says what is wrong
	for until := time.Now().Add(watchdog); ; {
		found := h.framesOf(t, id)
		if found.Missing != "" {
			t.Errorf("got missing %q, want nothing", found.Missing)
		}
		if got := sideBySide(found.Frames); got == string(golden) || time.Now().After(until) {
			wantGolden(t, path, got)
			return
		}
	}
}

// reportEverything answers with what dialects translate in different ways.
func (h *testHub) reportEverything(_ context.Context, _ core.Request, say func(core.Body) error) error {
	for _, b := range []core.Body{
		core.Thinking{Text: "let me see"}, core.ToolCall{ID: "t1", Name: "search", Input: `{"for":"it"}`},
		core.ToolResult{ID: "t1", Output: "found"}, core.Text{Text: "It is here."}, core.Usage{Input: 3, Output: 4},
	} {
		if err := say(b); err != nil {
			return err
		}
	}
	return nil
}

// taskOf returns the task that the agent has had.
func (h *testHub) taskOf(t *testing.T, agent string) string {
	t.Helper()
	var list struct{ Tasks []struct{ ID string } }
	_, out, _ := h.run(t, "tasks", "--agent", agent, "--json")
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Tasks) != 1 {
		t.Fatalf("got %d tasks and %v, want the one", len(list.Tasks), err)
	}
	return list.Tasks[0].ID
}

// framesOf returns the frames of a task, as the command prints them.
func (h *testHub) framesOf(t *testing.T, id string) (found hub.TaskFrames) {
	t.Helper()
	code, out, errs := h.run(t, "frames", id, "--json")
	if err := json.Unmarshal([]byte(out), &found); err != nil || code != command.ExitDone {
		t.Fatalf("got %d, %v and %s, want the frames as JSON", code, err, errs)
	}
	return found
}

// sideBySide prints frames by connection, with the name of each and what it became: the order of two
// connections among each other is that of the clock.
func sideBySide(all []frame.Frame) string {
	text := map[string]*strings.Builder{}
	for _, f := range all {
		b := text[f.Connection]
		if b == nil {
			b = &strings.Builder{}
			text[f.Connection] = b
		}
		b.WriteString(string(f.Direction) + " " + nameOf(f.Frame) + ":")
		for _, is := range f.Became {
			b.WriteString(" " + is.Kind + " " + is.Disposition + ",")
		}
		b.WriteString("\n")
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(text)) {
		b.WriteString("# " + name + "\n" + text[name].String())
	}
	return b.String()
}

// nameOf returns what a dialect calls a frame.
func nameOf(raw json.RawMessage) string {
	var f struct {
		Type, Kind, Method, Command string
		Event                       json.RawMessage
		Payload                     map[string]json.RawMessage
		Params                      struct {
			Update struct{ SessionUpdate string }
		}
		Response map[string]json.RawMessage
		Result   json.RawMessage
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return string(raw)
	}
	var event struct{ Kind, Type string }
	_ = json.Unmarshal(f.Event, &event)
	parts := []string{f.Type, f.Kind, f.Command, event.Type, event.Kind, f.Method, f.Params.Update.SessionUpdate}
	if f.Result != nil {
		parts = append(parts, "result")
	}
	var whole map[string]json.RawMessage
	_ = json.Unmarshal(raw, &whole)
	for _, one := range []string{"sendMessage", "response", "executePackTool", "packToolResult", "register", "toolApproval", "cancelRequest"} {
		if whole[one] != nil {
			parts = append(parts, one)
		}
	}
	for _, one := range []string{"thinking", "text", "toolUse", "toolResult", "usage", "done", "error"} {
		if f.Response[one] != nil {
			parts = append(parts, one)
		}
	}
	var item map[string]json.RawMessage
	_ = json.Unmarshal(f.Result, &item)
	for _, one := range []string{"task", "statusUpdate", "artifactUpdate"} {
		if item[one] != nil {
			parts = append(parts, one)
		}
	}
	if name := strings.Join(strings.Fields(strings.Join(parts, " ")), " "); name != "" {
		return name
	}
	return strings.Join(slices.Sorted(maps.Keys(whole)), ",")
}

// wantGolden compares a text with a file, which UPDATE_GOLDEN=1 writes.
func wantGolden(t *testing.T, path, got string) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", path, d)
	}
}

func TestAHubThatKeepsNoFramesSaysHowToKeepThem(t *testing.T) {
	h := newTestHub(t, nil)
	h.startAgent(t, coven.Name, "guide", 1)
	key := h.key()
	if code, _, errs := h.run(t, "ask", "guide", "say "+key); code != command.ExitDone {
		t.Fatalf("got %d and %s, want an answer", code, errs)
	}
	id := h.taskOf(t, "guide")
	resp, err := http.Get(h.url() + "/v1/tasks/" + id + "/frames") //nolint:noctx // the test ends it
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusConflict {
		t.Errorf("got status %d, want 409", resp.StatusCode)
	}
	if code, _, errs := h.run(t, "frames", id); code == command.ExitDone || !strings.Contains(errs, "frames.keep") {
		t.Errorf("got %d and %q, want an error that names frames.keep", code, errs)
	}
}
