package e2e

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/native"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	corehub "github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
)

// stage is a hub on which something of everything is seen: four dialects, a sentence that crosses two
// of them, tasks that cause tasks, one that failed, and what waits for a person.
type stage struct {
	*testHub
	gardener hubAgent
	crossed  string // a task of a pi client at a Coven agent, with frames
	planned  string // a task that caused others
	thread   string
	waits    *task.Task // for a decision
}

func onStage(c *config.Config) {
	c.Frames.Keep = 1 << 20
	c.Budgets = append(c.Budgets, config.Budget{Agent: "librarian", Tokens: 5000, Per: "day"})
}

// setStage plays until everything is there. Names and texts are fixed, for pictures.
func setStage(t *testing.T, h *testHub) *stage {
	t.Helper()
	s := &stage{testHub: h}
	s.joins(t, coven.Name, core.Card{ID: "librarian", Name: "Librarian", Model: "claude-sonnet", Capabilities: []string{"timetables", "archive"}, Domains: []string{"travel.rail"}, MaxConcurrent: 4}, librarian)
	s.joins(t, parallax.Dialect, core.Card{ID: "weather", Capabilities: []string{"forecast"}, MaxConcurrent: 8}, func(_ context.Context, _ core.Request, say func(core.Body) error) error {
		return sayAll(say, core.Thinking{Text: "looking at the charts of tonight"}, core.Text{Text: "Clear sky over Madrid, 14 degrees."}, core.Usage{Input: 240, Output: 31})
	})
	s.joins(t, acp.Dialect, core.Card{ID: "booking", Capabilities: []string{"tickets"}, MaxConcurrent: 2}, func(context.Context, core.Request, func(core.Body) error) error {
		return core.NewFault(core.CodeUnreachable, "the booking office is closed until 06:00")
	})
	var planner client.AskFunc
	joined := make(chan struct{})
	s.joinsAsking(t, native.Dialect, core.Card{ID: "planner", Capabilities: []string{"planning"}, MaxConcurrent: 4}, func(ctx context.Context, _ core.Request, say func(core.Body) error) error {
		if err := sayAll(say, core.Thinking{Text: "the train first, then the weather"}); err != nil {
			return err
		}
		train, err := planner(ctx, "librarian", "When does the night train to Lisbon leave?")
		if err != nil {
			return err
		}
		sky, err := planner(ctx, "weather", "How is the sky on the way?")
		if err != nil {
			return err
		}
		return sayAll(say, core.Text{Text: train + "\n" + sky}, core.Usage{Input: 512, Output: 64})
	}, func(ask client.AskFunc) { planner = ask; close(joined) })
	<-joined
	s.joins(t, native.Dialect, core.Card{ID: "coder", Model: "claude-sonnet", Capabilities: []string{"code"}, MaxConcurrent: 2}, coder)

	host := s.service.Hub().Connect(corehub.Identity{Principal: core.Principal{ID: "host"}, Dialect: native.Dialect})
	t.Cleanup(func() { host.Close(nil) })
	if err := host.Join(core.Card{
		ID: "gardener", Dialect: native.Dialect, MaxConcurrent: 8, Capabilities: []string{"ui", "garden"}, Features: core.FeatureApprovals | core.FeatureInjection | core.FeatureCancellation | core.FeatureStreaming,
	}, corehub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	s.gardener = hubAgent{host, t}

	asker := piOverWebSocket().connect(t, s.testHub, "asker")
	t.Cleanup(asker.leave)
	asker.begin(query{to: "librarian", content: "When does the night train to Lisbon leave?"}).wait(t)
	s.crossed = s.taskOf(t, "librarian")

	alice := s.service.Hub().Connect(corehub.Identity{Principal: core.Principal{ID: "alice", Operator: true}, Dialect: "rest"})
	t.Cleanup(func() { alice.Close(nil) })
	ask := func(to core.AgentID, content, thread string) *task.Task {
		t.Helper()
		asked, err := alice.Open(core.Request{To: core.ToAgent(to), Content: content, Thread: core.ThreadID(thread)}, corehub.OpenOptions{Unwatched: true})
		if err != nil {
			t.Fatal(err)
		}
		return asked
	}
	planned := ask("planner", "Plan my way to Lisbon tonight", "lisbon")
	s.planned = string(planned.ID())
	s.await(t, "my ended")
	ask("booking", "Book two berths to Lisbon", "lisbon")
	s.await(t, "two ended")
	s.thread = "lisbon"

	ask("coder", "The parser takes an empty name. Can you mend it, and show me the test?", "parser")
	s.await(t, "parser ended")

	hello := ask("gardener", "How are the roses?", "garden")
	s.gardener.nextTask()
	s.gardener.report(hello, core.Text{Text: "They want water, and less of the north wind."}, core.Usage{Input: 120, Output: 18}, core.Done{})
	s.waits = ask("gardener", "Tidy the shed, and throw out what is broken", "garden")
	s.gardener.nextTask()
	s.gardener.report(s.waits, core.Accepted{}, core.Thinking{Text: "what is broken, and what only looks so?"}, core.Text{Text: "I shall throw out the rusty rake and the cracked pots."}, core.Usage{Input: 300, Output: 42},
		core.ToolCall{ID: "k", Name: "remove", Input: `{"things":["rusty rake","cracked pots"],"from":"shed"}`}, core.ApprovalRequested{ID: "k", Name: "remove", Input: `{"things":["rusty rake","cracked pots"],"from":"shed"}`})
	alice.WatchQuestions(question.View{Tag: "alice", Thread: "garden", For: alice.Identity().Principal})
	s.gardener.CallTool("q", "ask_user", json.RawMessage(`{"question":"Where shall the old bench go?","header":"Bench","options":[{"label":"Under the pear tree","description":"shade after noon"},{"label":"To the wall","description":"sun all day"}]}`))
	return s
}

// librarian answers with what dialects translate in different ways.
func librarian(_ context.Context, _ core.Request, say func(core.Body) error) error {
	return sayAll(say, core.Thinking{Text: "the timetable of tonight"}, core.ToolCall{ID: "t1", Name: "timetable", Input: `{"from":"Madrid","to":"Lisbon"}`},
		core.ToolResult{ID: "t1", Output: "21:43 daily, platform 5"}, core.Text{Text: "The night train to Lisbon leaves at 21:43."}, core.File{Name: "ticket.txt", MediaType: "text/plain", Data: []byte("Madrid, Lisbon, 21:43")},
		core.Usage{Input: 1830, Output: 96, CacheRead: 1200})
}

// coder answers as coding agents do: with Markdown, and tools that look and change.
func coder(_ context.Context, _ core.Request, say func(core.Body) error) error {
	return sayAll(say, core.Thinking{Text: "where names are read"},
		core.ToolCall{ID: "1", Name: "Bash", Input: `{"command":"grep -n 'func name' parser.go\ngo test ./parser","description":"Find where names are read"}`},
		core.ToolResult{ID: "1", Output: "41:func name(s string) (string, error) {\n--- FAIL: TestName (0.00s)"},
		core.ToolCall{ID: "2", Name: "Edit", Input: `{"file_path":"parser.go","old_string":"\tname := strings.TrimSpace(s)\n\treturn name, nil\n","new_string":"\tname := strings.TrimSpace(s)\n\tif name == \"\" {\n\t\treturn \"\", errEmpty\n\t}\n\treturn name, nil\n"}`},
		core.ToolResult{ID: "2", Output: "The file parser.go has been updated."},
		core.Text{Text: "It is mended: `name` **refuses an empty name** now.\n\n| input | before | now |\n|---|---|---|\n| `\"\"` | taken | `errEmpty` |\n| `\" a \"` | `a` | `a` |\n\nThe test:\n\n```go\nfunc TestAnEmptyNameIsRefused(t *testing.T) {\n\tif _, err := name(\"  \"); !errors.Is(err, errEmpty) {\n\t\tt.Errorf(\"got %v, want errEmpty\", err)\n\t}\n}\n```\n\n1. `go test ./parser` passes.\n2. Nothing else calls `name` with blanks.\n"},
		core.Usage{Input: 5210, Output: 388, Model: "claude-sonnet"}, core.Done{})
}

// sayAll says one after the other. For a picture an agent takes its time, as agents do.
func sayAll(say func(core.Body) error, all ...core.Body) error {
	for _, b := range all {
		if *pictures != "" {
			<-time.After(200 * time.Millisecond)
		}
		if err := say(b); err != nil {
			return err
		}
	}
	return nil
}

// joins connects an agent until the test ends.
func (s *stage) joins(t *testing.T, dialect string, card core.Card, handle core.Handler) {
	t.Helper()
	s.joinsAsking(t, dialect, card, handle, func(client.AskFunc) {})
}

func (s *stage) joinsAsking(t *testing.T, dialect string, card core.Card, handle core.Handler, joined func(client.AskFunc)) {
	t.Helper()
	ctx, leave := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	t.Cleanup(func() {
		leave()
		<-ended
	})
	card.Features |= core.FeatureStreaming | core.FeatureCancellation
	to := client.Hub{URL: s.url(), GRPC: s.service.Addresses().GRPC}
	go func() { ended <- service.Joins()[dialect](ctx, to, card, handle, joined, s.log) }()
	s.await(t, "joined "+string(card.ID))
}
