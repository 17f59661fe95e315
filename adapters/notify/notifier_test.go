package notify_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/adapters/notify"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/redact"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// told is the form of a message, as its receiver reads it.
type told struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Text      string    `json:"text"`
	URL       string    `json:"url"`
	Data      struct {
		Task, Thread, Agent, From, State, Code, Reason string
		Approval                                       *struct {
			ID, Tool string
			SHA      string `json:"input_sha256"`
			Until    time.Time
		}
		Question *struct {
			ID    string
			Until time.Time
		}
		Content *struct {
			Asked, Answer, Input, Question string
			Options                        []string
		}
	} `json:"data"`

	header http.Header
	body   string
}

// receiver is the end of a webhook.
type receiver struct {
	url     string
	got     chan told
	refuses atomic.Int32 // how many requests it still refuses
}

// receive starts a receiver, outside of any bubble: a listening socket would hold up the time there.
func receive(t *testing.T) *receiver {
	r := &receiver{got: make(chan told, 100)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		var m told
		if err != nil || json.Unmarshal(body, &m) != nil {
			t.Errorf("got %q and %v, want JSON", body, err)
		}
		if r.refuses.Add(-1) >= 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		m.header, m.body = q.Header, string(body)
		r.got <- m
	}))
	t.Cleanup(srv.Close)
	r.url = srv.URL + "/a-secret-path?token=a-secret-query"
	return r
}

// bench is a hub with an agent and a person, whose events are told.
type bench struct {
	*testing.T
	hub         *hub.Hub
	log         strings.Builder
	notifier    *notify.Notifier
	user, agent *hub.Session
}

// stop stops the hub and posts what is left.
func (b *bench) stop() { b.stopWithin(b.Context()) }

func (b *bench) stopWithin(ctx context.Context) {
	now, cancel := context.WithCancel(b.Context())
	cancel()
	_ = b.hub.Close(now, "the test is over") // tasks run still
	b.notifier.Close(ctx)
}

// tell starts a hub that tells its events to webhooks. Log is read after stop.
func tell(t *testing.T, all ...notify.Webhook) *bench {
	return tellFrom(t, func(o hub.Options) hub.Options { return o }, all...)
}

// tellFrom is tell with other options of the hub.
func tellFrom(t *testing.T, options func(hub.Options) hub.Options, all ...notify.Webhook) *bench {
	b := &bench{T: t}
	hidden, err := redact.New([]string{"sesame"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	secrets := func() *redact.Redactor { return hidden }
	n := notify.New(notify.Options{
		Console: func() string { return "https://hub.example.com" }, Redact: secrets, Log: slog.New(slog.NewTextHandler(&b.log, nil)),
		Count: func(name string) { b.hub.Count(name) },
	})
	n.SetWebhooks(all)
	b.hub = coretest.NewHub(t, options(hub.Options{Observer: n, Redact: secrets}))
	n.Start(b.hub)
	b.notifier = n
	b.user = b.hub.Connect(hub.Identity{Principal: core.Principal{ID: "anna", Operator: true}, Dialect: "test"})
	b.agent = b.join("claude")
	return b
}

func (b *bench) join(id core.AgentID) *hub.Session {
	s := b.hub.Connect(hub.Identity{Principal: core.Principal{ID: string(id)}, Dialect: "test"})
	if err := s.Join(core.Card{ID: id, Dialect: "test", Features: core.FeatureApprovals | core.FeatureStreaming, MaxConcurrent: 100}, hub.JoinOptions{}); err != nil {
		b.Fatal(err)
	}
	return s
}

// ask opens a task that claude has then, askOf one that another agent has.
func (b *bench) ask(from *hub.Session, content string) core.TaskID {
	b.Helper()
	return b.askOf(b.agent, from, content)
}

func (b *bench) askOf(agent, from *hub.Session, content string) core.TaskID {
	b.Helper()
	asked, err := from.Open(core.Request{To: core.ToAgent(agent.AgentID()), Content: content}, hub.OpenOptions{Unwatched: true})
	if err != nil {
		b.Fatal(err)
	}
	for {
		got, err := agent.Next(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if got.Task != nil && got.Task.ID() == asked.ID() {
			return asked.ID()
		}
	}
}

func (b *bench) report(id core.TaskID, bodies ...core.Body) {
	b.Helper()
	for _, body := range bodies {
		if err := b.agent.Report(id, body, nil); err != nil {
			b.Fatal(err)
		}
	}
}

const asksForIt = `{"command":"open sesame"}`

func TestAToolCallThatWaitsIsToldWithItsHashAndWithoutItsInput(t *testing.T) {
	r := receive(t)
	b := tell(t, notify.Webhook{URL: r.url, On: []string{notify.Waiting}})
	defer b.stop()
	id := b.ask(b.user, "what nobody else is to read")
	b.report(id, core.ToolCall{ID: "c1", Name: "Bash", Input: asksForIt}, core.ApprovalRequested{ID: "c1", Name: "Bash", Input: asksForIt})
	m := <-r.got
	a := m.Data.Approval
	if m.Type != "waiting" || m.Data.Task != string(id) || m.Data.Agent != "claude" || m.Data.From != "anna" || m.Data.Thread == "" ||
		a == nil || a.ID != "c1" || a.Tool != "Bash" || a.SHA != core.InputDigest(asksForIt) || a.Until.Sub(m.Timestamp) != b.hub.Limits().QuestionTimeout {
		t.Errorf("got %s, want who asks for what, in which task, and until when", m.body)
	}
	if want := "https://hub.example.com/#/tasks/" + string(id); m.URL != want {
		t.Errorf("got the link %q, want %q", m.URL, want)
	}
	if want := "claude asks to run Bash: decide until " + a.Until.Format("2 Jan 15:04 UTC"); m.Text != want {
		t.Errorf("got the text %q, want %q", m.Text, want)
	}
	for _, secret := range []string{"nobody else", "open", "sesame"} {
		if strings.Contains(m.body, secret) {
			t.Errorf("got %s, want nothing of what was said", m.body)
		}
	}
}

// Some agents have the command that they want to run for a name of the tool.
func TestATitleOfAToolIsContent(t *testing.T) {
	r := receive(t)
	b := tell(t, notify.Webhook{URL: r.url, On: []string{notify.Waiting}})
	defer b.stop()
	id := b.ask(b.user, "go")
	b.report(id, core.ToolCall{ID: "c1", Name: "`rm -rf plans`", Input: "{}"}, core.ApprovalRequested{ID: "c1", Name: "`rm -rf plans`", Input: "{}"})
	if m := <-r.got; strings.Contains(m.body, "plans") || !strings.HasPrefix(m.Text, "claude asks to run a tool: ") {
		t.Errorf("got %s, want nothing of the command", m.body)
	}
}

func TestContentIsToldToAWebhookThatIsToHaveItWithoutSecretsAndCut(t *testing.T) {
	r, other := receive(t), receive(t)
	b := tell(t, notify.Webhook{URL: r.url, On: []string{notify.Waiting, notify.Ended}, Content: true}, notify.Webhook{URL: other.url, On: []string{notify.Ended}})
	defer b.stop()
	id := b.ask(b.user, "say sesame")
	b.report(id, core.ApprovalRequested{ID: "c1", Name: "Bash", Input: asksForIt})
	if m := <-r.got; m.Data.Content == nil || m.Data.Content.Input != `{"command":"open [redacted]"}` {
		t.Errorf("got %s, want the input without the secret", m.body)
	}
	if err := b.user.Decide(t.Context(), id, core.ApprovalDecided{ID: "c1", Approved: true}); err != nil {
		t.Fatal(err)
	}
	b.report(id, core.Done{Text: "said sesame\x1b " + strings.Repeat("é", 3000)})
	m := <-r.got
	if c := m.Data.Content; c == nil || c.Asked != "say [redacted]" || !strings.HasPrefix(c.Answer, `said [redacted]\x1b é`) || !strings.HasSuffix(c.Answer, "é…") || len(c.Answer) > 2003 {
		t.Errorf("got %s, want what was asked and answered, cut at 2000 bytes", m.body)
	}
	if m := <-other.got; m.Data.Content != nil || m.Data.State != "done" || m.Text != "claude is done" {
		t.Errorf("got %s, want no content where it was not asked for", m.body)
	}
}

func TestAQuestionIsToldUntilItIsSettled(t *testing.T) {
	r := receive(t)
	b := tell(t, notify.Webhook{URL: r.url, On: []string{notify.Waiting}, Content: true})
	defer b.stop()
	id := b.ask(b.user, "go")
	b.hub.ReadQuestions(core.Principal{ID: "anna", Operator: true}, "")
	answered := make(chan error, 1)
	go func() {
		_, err := b.agent.AskPeople(t.Context(), id, question.Question{Text: "Which <!channel> branch?", Options: []core.Option{{Label: "main"}, {Label: "work"}}})
		answered <- err
	}()
	m := <-r.got
	if q := m.Data.Question; q == nil || q.ID == "" || !strings.HasPrefix(m.Text, "claude asks: Which ‹!channel› branch? (until ") {
		t.Errorf("got %s, want the question, and nothing that a receiver takes for a command", m.body)
	}
	if c := m.Data.Content; c == nil || c.Question != "Which <!channel> branch?" || len(c.Options) != 2 {
		t.Errorf("got %s, want what is asked, with its options", m.body)
	}
	if _, err := b.user.AnswerQuestion(t.Context(), core.Reply{Question: m.Data.Question.ID, Selected: []string{"main"}}); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// What a task asks of others ends within it, what was refused was told to who asked, and agents and services open tasks
// all day.
func TestOnlyTheEndsOfTasksOfPeopleAreTold(t *testing.T) {
	r := receive(t)
	b := tell(t, notify.Webhook{URL: r.url, On: []string{notify.Ended, notify.Failed}})
	service := b.hub.Connect(hub.Identity{Principal: core.Principal{ID: "ci", Authenticated: true, Credential: &core.Credential{Kind: core.KindService}}, Dialect: "test"})
	if _, err := b.user.Open(core.Request{To: core.ToAgent("nobody"), Content: "go"}, hub.OpenOptions{Unwatched: true}); err == nil {
		t.Error("got no refusal, want one")
	}
	b.report(b.ask(service, "go"), core.Done{})
	first := b.ask(b.user, "go")
	helper := b.join("pi")
	if err := helper.Report(b.askOf(helper, b.agent, "go on"), core.Done{}, nil); err != nil {
		t.Fatal(err)
	}
	b.report(first, core.Failed{Fault: core.NewFault(core.CodeOverloaded, "no more today, %s", "sesame")})
	cancelled := b.ask(b.user, "go")
	b.report(cancelled, core.Cancelled{Reason: "enough"})
	b.stop()
	got := map[string]told{}
	for range len(r.got) {
		m := <-r.got
		got[m.Data.Task] = m
	}
	if m := got[string(first)]; m.Type != "failed" || m.Data.Code != "overloaded" || m.Text != "claude has failed (overloaded)" || strings.Contains(m.body, "no more today") {
		t.Errorf("got %s, want the failure with its code, and not what its agent says of it", m.body)
	}
	if m := got[string(cancelled)]; m.Type != "ended" || m.Data.State != "cancelled" {
		t.Errorf("got %s, want what was cancelled", m.body)
	}
	if len(got) != 2 {
		t.Errorf("got %v, want the two of the person alone", got)
	}
}

func TestAWebhookIsToldOfItsAgentsAlone(t *testing.T) {
	r := receive(t)
	b := tell(t, notify.Webhook{URL: r.url, On: []string{notify.Ended}, Agents: []string{"pi-*"}}, notify.Webhook{URL: r.url, On: []string{notify.Ended}, Agents: []string{"pi-*", "cl*de"}})
	b.report(b.ask(b.user, "go"), core.Done{})
	b.stop()
	if n := len(r.got); n != 1 {
		t.Errorf("got %d messages, want one: of the webhook whose pattern names the agent", n)
	}
}

// The signature is checked as the specification of Standard Webhooks has it, by code of its own.
func TestMessagesAreSignedAsStandardWebhooksHasItAtEachAttempt(t *testing.T) {
	r := receive(t)
	r.refuses.Store(2)
	key := []byte("a key of more than 24 bytes")
	synctest.Test(t, func(t *testing.T) {
		b := tell(t, notify.Webhook{URL: r.url, On: []string{notify.Ended}, Key: key})
		begun := time.Now()
		b.report(b.ask(b.user, "go"), core.Done{})
		time.Sleep(time.Hour)
		m := <-r.got
		id, at := m.header.Get("webhook-id"), m.header.Get("webhook-timestamp")
		sum := hmac.New(sha256.New, key)
		fmt.Fprintf(sum, "%s.%s.%s", id, at, m.body)
		if got, want := m.header.Get("webhook-signature"), "v1,"+base64.StdEncoding.EncodeToString(sum.Sum(nil)); got != want {
			t.Errorf("got the signature %q, want %q", got, want)
		}
		if seconds, err := strconv.ParseInt(at, 10, 64); err != nil || seconds != begun.Add(6*time.Minute).Unix() || !strings.HasPrefix(id, "msg_") || strings.Contains(id, ".") {
			t.Errorf("got the time %q and the id %q, want that of the third attempt, 1 and 5 minutes after the others, and an id without a dot", at, id)
		}
		b.stop()
		log := b.log.String()
		for _, want := range []string{"notification retrying", "attempt=2", "the target answered 503 Service Unavailable", "notification delivered", "attempt=3", "webhook=127.0.0.1", "event=ended"} {
			if !strings.Contains(log, want) {
				t.Errorf("got the log\n%s\nwant %q in it", log, want)
			}
		}
		if strings.Contains(log, "a-secret") {
			t.Errorf("got the log\n%s\nwant nothing of the path and the query", log)
		}
		if n := b.hub.Counters(); n["notify.retrying"] != 2 || n["notify.delivered"] != 1 {
			t.Errorf("got %v, want the attempts counted", n)
		}
	})
}

func TestAnAgentIsDownOnceItHasNotComeBackFor30Seconds(t *testing.T) {
	r := receive(t)
	synctest.Test(t, func(t *testing.T) {
		b := tell(t, notify.Webhook{URL: r.url, On: []string{notify.AgentDown}})
		defer b.stop()
		gone := core.NewFault(core.CodeUnreachable, "the connection was cut")
		b.agent.Close(gone)
		time.Sleep(20 * time.Second)
		back := b.join("claude")
		time.Sleep(time.Minute)
		if n := len(r.got); n != 0 {
			t.Fatalf("got %s, want nothing of an agent that came back", (<-r.got).body)
		}
		for range 2 { // each time that it is down, once
			begun := time.Now()
			back.Close(gone)
			time.Sleep(time.Hour)
			m := <-r.got
			if m.Type != "agent_down" || m.Data.Agent != "claude" || m.Data.State != "gone" || m.URL != "https://hub.example.com/#/agents/claude" || !m.Timestamp.Equal(begun.Add(30*time.Second)) {
				t.Errorf("got %s, want the agent that is down, after 30s", m.body)
			}
			back = b.join("claude")
			synctest.Wait()
		}
		if n := len(r.got); n != 0 {
			t.Errorf("got %d more messages, want one each time", n)
		}
	})
}

// A peer that is known by its id alone may have come to ask: nobody waits for it.
func TestAPeerThatIsReachedByItsIDAloneIsNotDownOnceItHasLeft(t *testing.T) {
	r := receive(t)
	synctest.Test(t, func(t *testing.T) {
		b := tell(t, notify.Webhook{URL: r.url, On: []string{notify.AgentDown}})
		asker := b.hub.Connect(hub.Identity{Principal: core.Principal{ID: "asker"}, Dialect: "test"})
		if err := asker.Join(core.Card{ID: "asker", Dialect: "test"}, hub.JoinOptions{OnlyByID: true}); err != nil {
			t.Fatal(err)
		}
		asked, err := b.user.Open(core.Request{To: core.ToAgent("asker"), Content: "go"}, hub.OpenOptions{Unwatched: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := asker.Report(asked.ID(), core.Done{}, nil); err != nil {
			t.Fatal(err)
		}
		asker.Close(nil)
		time.Sleep(time.Hour)
		b.stop()
		if n := len(r.got); n != 0 {
			t.Errorf("got %s, want nothing", (<-r.got).body)
		}
	})
}

func TestWhyAnAgentIsDownIsToldWithoutSecretsAndCut(t *testing.T) {
	r := receive(t)
	b := tell(t, notify.Webhook{URL: r.url, On: []string{notify.AgentDown}})
	b.agent.SetChild(core.Child{State: core.ChildFailed, LastError: "no key fits: sesame " + strings.Repeat("x", 5000)})
	b.notifier.ChildChanged("claude")
	b.stop()
	m := <-r.got
	if m.Data.State != "failed" || !strings.HasPrefix(m.Data.Reason, "no key fits: ") || strings.Contains(m.body, "sesame") || len(m.Data.Reason) > 2100 {
		t.Errorf("got %s, want why the agent has failed, redacted, and cut at 2000 bytes", m.body)
	}
}

// The task in memory may get its end only later, from the journal.
func TestTheEndOfATaskThatWasCutOffIsToldWhereItsCopyHasNone(t *testing.T) {
	r := receive(t)
	b := tell(t, notify.Webhook{URL: r.url, On: []string{notify.Failed}, Content: true})
	id := b.ask(b.user, "go")
	b.notifier.Cut(id, core.Event{At: time.Now(), Body: core.Failed{Fault: core.NewFault(core.CodeUnreachable, "hub a, which had the task, is gone: ask again")}})
	m := <-r.got
	b.stop()
	if m.Data.Task != string(id) || m.Data.Code != "unreachable" || !strings.HasPrefix(m.Data.Reason, "hub a, which had the task, is gone") {
		t.Errorf("got %s, want the task that was cut off", m.body)
	}
}

func TestTheTasksOfAnotherHubAreNotToldHere(t *testing.T) {
	r := receive(t)
	var other *coretest.OtherHub
	b := tellFrom(t, func(o hub.Options) hub.Options {
		other, o = coretest.NewOtherHub(t, o)
		return o
	}, notify.Webhook{URL: r.url, On: []string{notify.Waiting, notify.Ended, notify.Failed}})
	other.Join(core.Card{ID: "far"})
	asked, err := b.user.Open(core.Request{To: core.ToAgent("far"), Content: "go"}, hub.OpenOptions{Unwatched: true})
	if err != nil {
		t.Fatal(err)
	}
	b.user.AwaitEnd(asked)
	other.Task().Say(core.Assigned{Agent: "far", Attempt: 1}, core.ApprovalRequested{ID: "c", Name: "Bash", Input: "{}"}, core.Failed{Fault: core.NewFault(core.CodeInternal, "broke")})
	for !asked.HasEnded() {
		if _, err := b.user.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	b.report(b.ask(b.user, "go"), core.Done{})
	b.stop()
	if m := <-r.got; m.Data.Agent != "claude" || len(r.got) != 0 {
		t.Errorf("got %s, want what this hub's agent did alone", m.body)
	}
}

// A receiver that never answers holds up no task, and what is told is bounded.
func TestAReceiverThatHangsHoldsUpNoTask(t *testing.T) {
	hang := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer srv.Close()
	defer close(hang)
	b := tell(t, notify.Webhook{URL: srv.URL, On: []string{notify.Ended}})
	for range 100 {
		id := b.ask(b.user, "go")
		b.report(id, core.Done{})
		asked, err := b.hub.Task(t.Context(), core.Principal{ID: "anna", Operator: true}, id)
		if err != nil || !asked.IsDone() {
			t.Fatalf("got %v, want the task done", err)
		}
	}
	now, cancel := context.WithCancel(t.Context())
	cancel()
	b.stopWithin(now)
	if !strings.Contains(b.log.String(), "notifications were lost") {
		t.Errorf("got the log\n%s\nwant what was lost at the end", b.log.String())
	}
}
