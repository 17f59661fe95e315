package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/acptest"
	"github.com/dragoman-hub/dragoman/adapters/pi/pitest"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/demo"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
)

// clusterLoad is agents and clients of every dialect at the hubs of a cluster. Whoever loses the
// connection goes to the next hub.
type clusterLoad struct {
	hubs hubCluster
	// patience is how long an agent waits to be accepted. One that gives up may have been accepted just then, and
	// leaves with what it was given.
	patience time.Duration
	asked    atomic.Int64
	group    sync.WaitGroup
	leave    context.CancelFunc

	mu   sync.Mutex
	told []told
}

// told is what a client was told about its question.
type told struct {
	dialect, key string
	text         string      // of the answer, if end is ""
	task         core.TaskID // of the end
	end          string      // the last event, byte for byte, if the dialect tells it
}

// startLoad starts the agents and the clients, at hubs of which some may stand still and answer nothing.
func startLoad(hubs hubCluster) *clusterLoad { return startPatientLoad(hubs, 5*time.Second) }

// startPatientLoad is startLoad with agents that wait longer.
func startPatientLoad(hubs hubCluster, patience time.Duration) *clusterLoad {
	l := &clusterLoad{hubs: hubs, patience: patience}
	ctx, leave := context.WithCancel(context.Background())
	l.leave = leave
	at := 0
	for _, dialect := range demo.Answerers {
		for n := range 2 {
			from := at
			l.group.Go(func() { l.roam(ctx, dialect, fmt.Sprintf("%s-%d", dialect, n), from) })
			at++
		}
	}
	for _, h := range hubs {
		l.group.Go(func() {
			for ctx.Err() == nil {
				l.join(ctx, h, "native", "probe-"+h.name)
			}
		})
	}
	for dialect, ask := range l.askers() {
		for n := range 2 {
			l.group.Go(func() {
				for i := n; ctx.Err() == nil; i++ {
					l.ask(ctx, dialect, l.hubs[i%len(hubs)], ask)
				}
			})
		}
	}
	return l
}

// stop ends the load and returns what the clients were told.
func (l *clusterLoad) stop() []told {
	l.leave()
	l.group.Wait()
	return l.told
}

// untilTold waits until clients were told the answers to more questions.
func (l *clusterLoad) untilTold(t *testing.T, more int) {
	t.Helper()
	now := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.told)
	}
	want := now() + more
	l.hubs[0].until(fmt.Sprintf("clients got %d more answers", more), func() error {
		if got := now(); got < want {
			return fmt.Errorf("they got %d of %d", got, want)
		}
		return nil
	})
}

// untilDialects waits until clients were told something in so many dialects.
func (l *clusterLoad) untilDialects(t *testing.T, want int) {
	t.Helper()
	l.hubs[0].until(fmt.Sprintf("clients got answers in %d dialects", want), func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		dialects := map[string]bool{}
		for _, a := range l.told {
			dialects[a.dialect] = true
		}
		return notYet(len(dialects) >= want, fmt.Sprintf("got answers in %d", len(dialects)))
	})
}

// settle ends the load, waits until every task has its end, and compares the ends with what the
// clients were told. It returns how many were told in each dialect.
func (l *clusterLoad) settle(t *testing.T) (dialects map[string]int) {
	t.Helper()
	answers, dialects := l.stop(), map[string]int{}
	for _, a := range answers {
		dialects[a.dialect]++
	}
	late := time.Now().Add(watchdog / 2)
	l.hubs[0].until("every task has its end", func() error {
		running := l.hubs.running()
		if len(running) > 0 && !late.IsZero() && time.Now().After(late) {
			late = time.Time{}
			for _, id := range running[:min(3, len(running))] {
				t.Logf("task %s has no end: %s", id, l.hubs.describe(t.Context(), id))
			}
		}
		return notYet(len(running) == 0, fmt.Sprintf("%d tasks have no end: %s", len(running), running[:min(5, len(running))]))
	})
	stored := l.hubs.stored(t)
	for _, wrong := range contradictions(len(l.hubs), answers, stored) {
		t.Error(wrong)
	}
	for _, a := range answers {
		if len(stored[a.key]) == 0 && a.task != "" && !a.isIn(stored[noContent]) && !strings.Contains(a.end, neverStored) {
			unlisted, err := l.hubs.storedTask(t.Context(), a.task)
			t.Logf("no list has the task %s (%s); read by its id it is %+v (%v)", a.task, a.key, unlisted, err)
		}
	}
	t.Logf("%d questions are stored; ends that clients were told, by dialect: %v", len(stored), dialects)
	return dialects
}

func (l *clusterLoad) note(t told) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, t)
}

// newKey returns a key that only one question has.
func (l *clusterLoad) newKey() string { return fmt.Sprintf("key%d.", l.asked.Add(1)) }

// someAgent returns an address.
func (l *clusterLoad) someAgent() string {
	dialect := demo.Answerers[rand.IntN(len(demo.Answerers))]
	return fmt.Sprintf("%s-%d", dialect, rand.IntN(2))
}

// betweenTries is how long an agent or a client waits before the next hub.
const betweenTries = 30 * time.Millisecond

// roam is an agent that joins one hub after another.
func (l *clusterLoad) roam(ctx context.Context, dialect, id string, at int) {
	for ; ctx.Err() == nil; at++ {
		l.join(ctx, l.hubs[at%len(l.hubs)], dialect, id)
	}
}

// join is an agent until its connection ends.
func (l *clusterLoad) join(ctx context.Context, h *clusterHub, dialect, id string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	slow := time.AfterFunc(l.patience, cancel)
	defer slow.Stop()
	asks := make(chan client.AskFunc, 1)
	card := core.Card{ID: core.AgentID(id), Capabilities: []string{"load"}, MaxConcurrent: 32, Features: core.FeatureStreaming | core.FeatureCancellation}
	if strings.HasPrefix(id, "probe-") {
		card.Capabilities = nil
	}
	handle := func(ctx context.Context, r core.Request, say func(core.Body) error) error {
		if verb, rest, _ := strings.Cut(r.Content, " "); verb == "forward" {
			ask := <-asks
			asks <- ask
			return l.forward(ctx, dialect, ask, rest, say)
		}
		return answerSlowly(ctx, r, say)
	}
	_ = service.Joins()[dialect](ctx, client.Hub{URL: h.URL, GRPC: h.grpc}, card, handle, func(a client.AskFunc) {
		slow.Stop()
		asks <- a
	}, slog.New(slog.DiscardHandler)) // however it ended: the next one
	pauseFor(ctx, betweenTries)
}

func pauseFor(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// slowAnswer is the answer of every agent to a content.
func slowAnswer(content string) string {
	return content + strings.Repeat(" and so on", 8) + "."
}

// answerSlowly answers word by word; a content that begins with "long" until it is cancelled.
func answerSlowly(ctx context.Context, r core.Request, say func(core.Body) error) error {
	for _, word := range strings.SplitAfter(slowAnswer(r.Content), " ") {
		if err := say(core.Text{Text: word}); err != nil {
			return err
		}
		pauseFor(ctx, rand.N(20*time.Millisecond))
	}
	for strings.HasPrefix(r.Content, "long") && ctx.Err() == nil {
		if err := say(core.Text{Text: "more "}); err != nil {
			return err
		}
		pauseFor(ctx, 20*time.Millisecond)
	}
	return ctx.Err()
}

// forward asks another agent, as its dialect does that, and notes the answer.
func (l *clusterLoad) forward(ctx context.Context, dialect string, ask client.AskFunc, rest string, say func(core.Body) error) error {
	to, key, _ := strings.Cut(rest, " ")
	if ask == nil {
		return errors.New("agents of " + dialect + " cannot ask")
	}
	text, err := ask(ctx, to, key)
	if err != nil {
		return err
	}
	l.note(told{dialect: dialect + " agent", key: key, text: text})
	return say(core.Text{Text: text})
}

// askFunc asks an agent at a hub, and notes what it is told. It returns an error if the answer is
// not known.
type askFunc func(ctx context.Context, h *clusterHub, to, key string) error

// ask asks a question, and stops waiting in the end.
func (l *clusterLoad) ask(ctx context.Context, dialect string, h *clusterHub, ask askFunc) {
	const patience = 8 * time.Second
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	to := l.someAgent()
	if dialect != "a2a" && rand.IntN(4) == 0 { // whose paths name an agent
		to = "capability:load"
	}
	_ = ask(asking, h, to, l.newKey()) // it is the hubs that are judged, by what they have told
	pauseFor(ctx, betweenTries)
}

// askers are the clients of every dialect.
func (l *clusterLoad) askers() map[string]askFunc {
	simple := func(dialect string, ask func(context.Context, *clusterHub, string, string) (string, error)) askFunc {
		return func(ctx context.Context, h *clusterHub, to, key string) error {
			text, err := ask(ctx, h, to, key)
			if err == nil {
				l.note(told{dialect: dialect, key: key, text: text})
			}
			return err
		}
	}
	return map[string]askFunc{
		"rest": l.askREST, "acp": simple("acp", askACPAt), "pi": simple("pi", askPiAt),
		"a2a": simple("a2a", askA2AAt), "mcp": simple("mcp", askMCPAt),
		// Agents ask in their dialects when somebody asks them to.
		"coven": forwardBy("coven"), "parallax": forwardBy("parallax"), "native": forwardBy("native"),
	}
}

func forwardBy(dialect string) askFunc {
	return func(ctx context.Context, h *clusterHub, to, key string) error {
		var task struct{ State string }
		return h.Post(ctx, "/v1/tasks?wait=true", map[string]string{"to": dialect + "-0", "content": "forward " + to + " " + key}, &task)
	}
}

func askACPAt(ctx context.Context, h *clusterHub, to, key string) (string, error) {
	conn, err := client.DialWebSocket(ctx, client.Hub{URL: h.URL}, "/ws/acp", nil, client.MaxACPBytes)
	if err != nil {
		return "", err
	}
	c := acptest.New(conn, acptest.Options{ID: "acp-client", Progress: true})
	defer c.Close()
	addr, err := core.ParseAddress(to)
	if err != nil {
		return "", err
	}
	a, err := c.Ask(ctx, core.Request{To: addr, Content: key}, nil)
	return a.Text, err
}

func askPiAt(ctx context.Context, h *clusterHub, to, key string) (string, error) {
	conn, err := client.DialWebSocket(ctx, client.Hub{URL: "http://" + h.pi}, "/", nil, 64<<20)
	if err != nil {
		return "", err
	}
	var mu sync.Mutex
	var transcript pitest.Transcript
	c, err := pitest.Connect(ctx, conn, func(f pitest.Frame) {
		mu.Lock()
		defer mu.Unlock()
		transcript.Add(f)
	})
	if err != nil {
		return "", err
	}
	defer c.Close()
	session := "for-" + key
	for _, command := range []map[string]any{
		{"type": "create_session", "sessionId": session, "agent": to},
		{"type": "switch_session", "sessionId": session},
		{"type": "prompt", "sessionId": session, "message": key},
	} {
		f, err := c.Do(ctx, command)
		if err != nil {
			return "", err
		}
		if !f.Success {
			return "", errors.New(f.Error)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	text := transcript.Deltas.String()
	// A prompt succeeds also if its message says that the answer failed, at whichever place.
	if text != slowAnswer(key) || transcript.StopReason != "stop" {
		return "", fmt.Errorf("got %q and %s %s", text, transcript.StopReason, transcript.ErrorMessage)
	}
	return text, nil
}

// postRPC calls a method of JSON-RPC and decodes its result.
func postRPC(ctx context.Context, h *clusterHub, path, method string, params, result any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL+path, strings.NewReader(string(plainJSON(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("A2A-Version", "1.0")
	resp, err := h.HTTP.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	var answer struct{ Result json.RawMessage }
	if err := json.Unmarshal(raw, &answer); err != nil || answer.Result == nil {
		return fmt.Errorf("got %s", raw)
	}
	return json.Unmarshal(answer.Result, result)
}

func askA2AAt(ctx context.Context, h *clusterHub, to, key string) (string, error) {
	var sent struct {
		Task struct {
			Status struct {
				State   string
				Message struct{ Parts []struct{ Text string } }
			}
			Artifacts []struct{ Parts []struct{ Text string } }
		}
	}
	message := map[string]any{"messageId": core.NewID(), "role": "ROLE_USER", "parts": []any{map[string]any{"text": key}}}
	if err := postRPC(ctx, h, "/a2a/"+to, "SendMessage", map[string]any{"message": message}, &sent); err != nil {
		return "", err
	}
	if sent.Task.Status.State != "TASK_STATE_COMPLETED" {
		return "", fmt.Errorf("%s: %v", sent.Task.Status.State, sent.Task.Status.Message.Parts)
	}
	var text strings.Builder
	for _, a := range sent.Task.Artifacts {
		for _, p := range a.Parts {
			text.WriteString(p.Text)
		}
	}
	return text.String(), nil
}

func askMCPAt(ctx context.Context, h *clusterHub, to, key string) (string, error) {
	var called struct {
		IsError bool
		Content []struct{ Text string }
	}
	if err := postRPC(ctx, h, "/mcp", "tools/call", map[string]any{"name": "agent_ask", "arguments": map[string]any{"to": to, "content": key}}, &called); err != nil {
		return "", err
	}
	if called.IsError || len(called.Content) == 0 {
		return "", fmt.Errorf("got %+v", called)
	}
	var answer struct{ Text string }
	err := json.Unmarshal([]byte(called.Content[0].Text), &answer)
	return answer.Text, err
}
