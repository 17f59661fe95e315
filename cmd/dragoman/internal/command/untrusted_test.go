package command_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/audit"
	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
)

// hostile is what an agent may say: it clears the screen, writes backwards, hides letters, and
// writes a line that looks like the program's own.
const hostile = "x\x1b[2J\x07\u009b31m\u202e\u2066\u200b\u200d\ufeffy\x7f\r\nforged\u2028z\u115f\U000e0041\U000e0101"

// filled returns a value whose texts are all hostile.
func filled[V any]() (v V) {
	fill(reflect.ValueOf(&v).Elem(), 6)
	return v
}

func fill(v reflect.Value, depth int) {
	switch to := v.Addr().Interface().(type) {
	case *json.RawMessage:
		*to = asJSON(hostile)
		return
	case *time.Time:
		*to = time.Now()
		return
	case *core.Address:
		*to = core.ToAgent("a")
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(hostile)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), depth-1)
			}
		}
	case reflect.Pointer:
		if depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), depth-1)
		}
	case reflect.Slice:
		if depth > 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), depth-1)
		}
	case reflect.Map:
		if depth > 0 && v.Type().Key().Kind() == reflect.String {
			item := reflect.New(v.Type().Elem()).Elem()
			fill(item, depth-1)
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.ValueOf(hostile).Convert(v.Type().Key()), item)
		}
	}
}

func asJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// told are bodies of every kind but the ends.
var told = []core.Body{
	filled[core.Opened](), filled[core.Assigned](), filled[core.Accepted](), filled[core.SessionStarted](), filled[core.SessionLost](), filled[core.Thinking](),
	filled[core.ToolCall](), filled[core.ToolState](), filled[core.ToolResult](), filled[core.ApprovalRequested](), filled[core.ApprovalDecided](),
	filled[core.Injected](), filled[core.InjectionAnswered](), filled[core.File](), filled[core.Usage](), filled[core.Retrying](), filled[core.CancelRequested](),
	filled[core.ForeignFrame](),
}

var ends = []core.Body{core.Done{Data: asJSON(hostile)}, filled[core.Failed](), filled[core.Cancelled]()}

// eventsOf returns the lines of a stream of events, with gaps at last.
func eventsOf(bodies ...core.Body) string {
	var s strings.Builder
	for i, b := range bodies {
		line := map[string]any{"id": hostile, "task": hostile, "cursor": "1.1", "seq": i + 1, "epoch": 1, "at": time.Now(), "kind": b.Kind().String(), "body": b}
		s.Write(asJSON(line))
		s.WriteString("\n")
	}
	for _, gap := range []map[string]any{{"task": hostile, "from": 1, "to": 2}, {"task": hostile, "from": 1}, {"after": hostile}} {
		s.Write(asJSON(map[string]any{"gap": gap}))
		s.WriteString("\n")
	}
	return s.String()
}

// hostileHub is a hub all of whose agents say what is hostile. With refuses it refuses everything,
// in such words.
func hostileHub(t *testing.T, refuses bool, end core.Body) string {
	events := eventsOf(append(slices.Clone(told), end)...)
	answers := map[string]any{
		"GET /v1/agents":      map[string]any{"agents": []any{filled[hub.AgentStatus]()}},
		"GET /v1/agents/{id}": filled[hub.AgentStatus](), "POST /v1/agents/{id}/restart": map[string]string{"id": hostile},
		"GET /v1/packs":     map[string]any{"packs": []any{filled[hub.PackStatus]()}},
		"GET /v1/approvals": map[string]any{"approvals": []any{filled[task.PendingApproval](), with(filled[task.PendingApproval](), func(a *task.PendingApproval) { a.Task = "t" })}},
		"GET /v1/questions": map[string]any{"questions": []any{filled[question.Question]()}}, "POST /v1/questions/{id}/answer": filled[question.Outcome](),
		"GET /v1/usage": filled[client.UsageTotals](), "GET /v1/threads/{id}": map[string]any{"turns": []any{}},
		"POST /v1/hub/drain": map[string]string{"id": hostile}, "POST /v1/hubs/{name}/forget": map[string]string{"name": hostile},
		"GET /v1/hub": map[string]any{
			"journal": map[string]string{"reason": hostile},
			"cluster": map[string]any{"stale": true, "hubs": []any{with(filled[cluster.Hub](), func(h *cluster.Hub) { h.State = cluster.Gone })}},
		},
		"GET /v1/tasks": map[string]any{"before": hostile, "tasks": []any{
			map[string]any{"id": hostile, "state": hostile, "agent": hostile, "from": map[string]string{"id": hostile}, "content": hostile, "found": hostile},
		}},
		"GET /v1/threads": map[string]any{"before": hostile, "threads": []any{filled[hub.ThreadStatus]()}},
		"GET /v1/tasks/{id}": map[string]any{
			"id": hostile, "state": hostile, "agent": hostile, "to": hostile, "thread": hostile, "intent": hostile, "from": map[string]string{"id": hostile},
			"content": hostile, "answer": map[string]any{"text": hostile, "data": hostile, "fault": map[string]string{"code": hostile, "message": hostile}},
		},
		"GET /v1/tasks/{id}/readers": map[string]any{"readers": []any{filled[task.ReaderStatus]()}},
		"GET /v1/tasks/{id}/frames": map[string]any{"missing": hostile, "frames": []any{
			map[string]any{"at": time.Now(), "dialect": hostile, "direction": hostile, "connection": hostile, "frame": hostile, "became": []any{map[string]string{"kind": hostile, "disposition": hostile}}},
			map[string]any{"at": time.Now(), "frame": map[string]string{hostile: hostile}},
		}},
		"POST /v1/tasks/{id}/decisions": filled[core.ApprovalDecided](), "POST /v1/tasks/{id}/cancel": map[string]string{"state": hostile},
		"POST /v1/tasks/{id}/inject": map[string]any{"task": hostile, "id": hostile, "accepted": end.Kind() != core.KindFailed, "reason": hostile},
		"POST /v1/notices":           map[string]any{"state": hostile, "answer": map[string]any{"fault": map[string]string{"code": hostile, "message": hostile}}},
		"GET /v1/events":             events, "GET /v1/tasks/{id}/events": events,
		"GET /v1/audit":                       string(asJSON(filled[audit.Line]())) + "\n",
		"GET /v1/principals":                  map[string]any{"principals": []any{with(filled[core.KnownPrincipal](), func(p *core.KnownPrincipal) { p.Status = core.PrincipalPending })}},
		"POST /v1/principals/{id}/{decision}": map[string]string{"principal": hostile, "status": hostile},
	}
	mux := http.NewServeMux()
	for pattern, answer := range answers {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("from") { // a command that goes on after a cut
				w.WriteHeader(http.StatusForbidden)
				_, _ = w.Write(asJSON(map[string]any{"code": "not_authorized", "detail": hostile}))
				return
			}
			if text, isStream := answer.(string); isStream {
				_, _ = io.WriteString(w, text)
				return
			}
			_, _ = w.Write(asJSON(answer))
		})
	}
	mux.HandleFunc("POST /mcp", func(w http.ResponseWriter, r *http.Request) {
		result := map[string]any{"tools": []any{map[string]any{"name": "x", "inputSchema": map[string]any{}}, map[string]any{"name": "x." + hostile}}}
		if r.Header.Get("Mcp-Method") == "tools/call" {
			result = map[string]any{"structuredContent": hostile, "content": []any{
				map[string]any{"type": hostile, "mimeType": hostile}, map[string]any{"type": "resource", "resource": map[string]any{"uri": hostile}},
			}}
			if end.Kind() == core.KindFailed { // other text is written to a file as it is
				result = map[string]any{"isError": true, "content": []any{map[string]any{"type": "text", "text": hostile}}}
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(asJSON(map[string]any{"jsonrpc": "2.0", "id": 1, "result": result}))
	})
	mux.HandleFunc("POST /v1/tasks", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") == client.NDJSON {
			_, _ = io.WriteString(w, events)
			return
		}
		_, _ = w.Write(asJSON(map[string]string{"id": hostile, "thread": hostile}))
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuses {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write(asJSON(map[string]any{"type": hostile, "title": hostile, "status": 409, "code": "conflict", "detail": hostile}))
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return "--hub=" + server.URL
}

func with[V any](v V, change func(*V)) V {
	change(&v)
	return v
}

// linesOfOthers are the commands that show the lines of a text of others below a heading.
var linesOfOthers = []string{"tasks x"}

func TestWhatOthersSayReachesTheTerminalVisibly(t *testing.T) {
	lines := map[string][]string{
		"agents":     {"", "x", "-o wide", "x -o wide", "restart x"},
		"tasks":      {"", "x", "x --readers"},
		"frames":     {"x"},
		"again":      {"x", "x --thinking"},
		"ask":        {"x hello --thinking", "x hello --thread t"},
		"chat":       {"x", "x --thinking", "x --thread t"},
		"delegate":   {"x hello", "x hello --thread t"},
		"cancel":     {"x"},
		"inject":     {"x hello"},
		"notify":     {"x hello"},
		"threads":    {""},
		"search":     {"x"},
		"approvals":  {""},
		"approve":    {"t", "t c", "t --all", "u"},
		"deny":       {"t", "t c", "u"},
		"questions":  {""},
		"answer":     {"x y"},
		"packs":      {""},
		"call":       {"x {}", "x.y"},
		"hubs":       {"", "forget x"},
		"drain":      {""},
		"tail":       {"", "x", "--color always"},
		"watch":      {""},
		"usage":      {"", "--by day"},
		"audit":      {"", "--verify"},
		"principals": {"list", "approve x", "revoke x"},
		"check":      {"--may bob ask x " + rulesConfig(t)},
	}
	// These show what their own user wrote: settings, flags, and logs, which quote.
	own := []string{"serve", "add", "demo", "agent", "stdio", "editor", "config", "token", "login", "logout", "version", "reap", "guard", "help", "completion"}
	for _, c := range command.NewRoot(command.Streams{}).Commands() {
		if _, known := lines[c.Name()]; !known && !slices.ContainsFunc(own, func(name string) bool { return strings.TrimPrefix(c.Name(), "__") == name }) && !isHidden(c) {
			t.Errorf("dragoman %s: it is not in this test, which plays what others say to each command", c.Name())
		}
	}
	for _, end := range ends {
		for _, refuses := range []bool{false, true} {
			at := hostileHub(t, refuses, end)
			for name, all := range lines {
				for _, args := range all {
					for _, flags := range []string{"", "--json"} {
						words := append(strings.Fields(name+" "+args+" "+flags), at)
						_, out, stderr := runWith(t, "hello", words...)
						if out+stderr == "" {
							t.Errorf("%q: got nothing, want some output", words)
						}
						if strings.Contains(args, "always") { // its own colours
							out = withoutColors.Replace(out)
						}
						if name == "audit" && args == "" && !refuses && !strings.Contains(out, "forged") {
							t.Errorf("%q: got %q, want the entry", words, out)
						}
						checkVisible(t, words, out+stderr, flags != "" || slices.Contains(linesOfOthers, name+" "+args))
					}
				}
			}
		}
	}
}

func isHidden(c *cobra.Command) bool { return c.Hidden }

var withoutColors = strings.NewReplacer("\x1b[0m", "", "\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "", "\x1b[36m", "", "\x1b[2m", "")

// checkVisible checks that everything in the output of a command can be seen, and that unless
// they may others wrote no line of their own.
func checkVisible(t *testing.T, words []string, output string, mayWriteLines bool) {
	t.Helper()
	for i, r := range output {
		if r != '\n' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)) {
			t.Errorf("%q: got %+q in %+q, want it shown as an escape", words, r, output[max(0, i-40):min(len(output), i+10)])
			return
		}
	}
	if !mayWriteLines && (strings.HasPrefix(output, "forged") || strings.Contains(output, "\nforged")) {
		t.Errorf("%q: got a line that an agent wrote in %q, want each on a line of the program's", words, output)
	}
}

func TestAnApprovalShowsTheWholeInput(t *testing.T) {
	input := `{"command":"` + strings.Repeat("true;  ", 1000) + "rm -rf /\u202e\"}"
	a := filled[task.PendingApproval]()
	a.Task, a.ID, a.Input, a.InputSHA256 = "t", "--all", input, strings.Repeat("7", 64)
	want := strings.ReplaceAll(input, "\u202e", `\u202e`)
	at := fakeHub(t, map[string]string{
		"GET /v1/approvals": string(asJSON(map[string]any{"approvals": []any{a}})),
		"POST /v1/tasks": eventsOf(core.Opened{Task: "t", Request: core.Request{To: core.ToAgent("a")}},
			core.ApprovalRequested{ID: "--all", Name: "bash", Input: input, InputSHA256: a.InputSHA256}, core.Done{}),
	})
	if _, out, _ := run(t, "approvals", at, "-o", "wide"); !strings.Contains(out, a.InputSHA256+"  "+want+"\n") {
		t.Errorf("approvals -o wide: got %.300q, want the input and its SHA-256", out)
	}
	if _, out, _ := run(t, "approvals", at); !strings.Contains(out, "  "+want+"\n") || strings.Contains(out, a.InputSHA256) {
		t.Errorf("approvals: got %.300q, want the input alone", out)
	}
	_, _, stderr := run(t, "ask", "a", "hello", at)
	if !strings.Contains(stderr, want) {
		t.Errorf("ask: got %.300q, want the input", stderr)
	}
	if decide := "'dragoman approve " + strings.Replace(at, "=", " ", 1) + " t --input-sha256 " + a.InputSHA256 + " -- --all'"; !strings.Contains(stderr, decide) {
		t.Errorf("ask: got %q, want %s", stderr[max(0, len(stderr)-400):], decide)
	}
}

func TestADecisionIsOnTheInputThatWasShown(t *testing.T) {
	var sent []map[string]any
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/approvals", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"approvals":[{"task":"t","id":"a","input_sha256":"aa"},{"task":"t","id":"b","input_sha256":"bb"}]}`)
	})
	mux.HandleFunc("GET /v1/tasks/t", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) })
	mux.HandleFunc("POST /v1/tasks/t/decisions", func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		if sent = append(sent, body); body["input_sha256"] == "old" {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"type":"about:blank","title":"Conflict","status":409,"code":"conflict","detail":"it now waits with another input"}`)
			return
		}
		_, _ = io.WriteString(w, `{"id":"a","approved":true,"by":"me"}`)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, c := range []struct {
		args  string
		input any
		says  string
	}{
		{"approve t a --input-sha256 aa", "aa", "a approved by me"},
		{"approve t a", nil, "a approved by me"},
		{"approve t --input-sha256 bb", "bb", "approved"},
		{"deny t a --input-sha256 old", "old", "it now waits with another input; 'dragoman approvals' shows what waits now"},
		{"approve t --input-sha256 old", nil, "'dragoman approvals' lists those that are"},
	} {
		sent = nil
		_, out, stderr := run(t, append(strings.Fields(c.args), "--hub="+server.URL)...)
		if !strings.Contains(out+stderr, c.says) {
			t.Errorf("%s: got %q and %q, want %q", c.args, out, stderr, c.says)
		}
		if len(sent) > 0 && sent[0]["input_sha256"] != c.input || len(sent) == 0 && c.input != nil {
			t.Errorf("%s: sent %v, want the SHA-256 %v", c.args, sent, c.input)
		}
	}
	if sent != nil {
		t.Errorf("for an input that waits no more: sent %v, want nothing", sent)
	}
}
