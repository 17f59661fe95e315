package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	nativeclient "github.com/dragoman-hub/dragoman/adapters/native/client"
	nativewire "github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

// openQuestion waits until the hub lists one question, other than the one before, and returns its id.
func (h *clusterHub) openQuestion(before string) (id string) {
	h.t.Helper()
	h.until("hub "+h.name+" lists a question", func() error {
		var list struct{ Questions []question.Question }
		if err := h.Get(h.t.Context(), "/v1/questions", &list); err != nil {
			return err
		}
		if len(list.Questions) != 1 || list.Questions[0].ID == before {
			return fmt.Errorf("it lists %+v", list.Questions)
		}
		id = list.Questions[0].ID
		return nil
	})
	return id
}

func TestPeopleToolsAndNoticesOverThreeHubs(t *testing.T) {
	t.Parallel()
	all := startCluster(t, 3)
	withdrawn := peopleAtEveryHub(t, all)
	disconnected := aToolIsCalled(t, all)
	anAnswerIsUnreadAtEveryHub(t, all)
	noticesReachEveryHub(t, all)
	all[1].kill()
	withdrawn()
	disconnected()
}

// An agent at b asks: people at a and c see it, answer it, and see what others have answered. Its
// last question is withdrawn once b has died.
func peopleAtEveryHub(t *testing.T, all hubCluster) (withdrawn func()) {
	t.Helper()
	a, b, c := all[0], all[1], all[2]
	asker := connectCovenAgentAt(t, b.grpc, "asker", "ui")
	t.Cleanup(asker.leave)
	for _, h := range all {
		h.until("the agent is known at "+h.name, func() error { return h.Get(t.Context(), "/v1/agents/asker", &struct{}{}) })
	}
	input := map[string]any{"question": "Which day?", "options": []any{map[string]any{"label": "Monday"}, map[string]any{"label": "Friday"}}}
	if got := asker.call("ask_user", input).wait(t); got.Code != "unsupported" {
		t.Errorf("nobody is at any hub: got %+v, want it refused", got)
	}
	ada := connectCovenClient(t, c.grpc)
	hers := ada.open("asker", "")
	call := asker.call("ask_user", input)
	asked := func(m *wire.ClientStreamEvent) bool { return m.GetUserQuestion() != nil }
	received := hers.readUntil(asked)
	q := received[len(received)-1].GetUserQuestion()
	if code, out, stderr := run(t, "questions", "--hub", a.URL); code != command.ExitDone || !strings.Contains(out, q.GetQuestionId()) {
		t.Errorf("dragoman questions at a: got %d, %q and %q, want the question", code, out, stderr)
	}
	if code, out, stderr := run(t, "answer", q.GetQuestionId(), "Friday", "--hub", a.URL); code != command.ExitDone || out != "Friday\n" {
		t.Errorf("dragoman answer at a: got %d, %q and %q, want it taken", code, out, stderr)
	}
	if got := call.wait(t); !sameJSON(got.Data, []byte(`{"answered":true,"selected":["Friday"]}`)) {
		t.Errorf("the agent at b got %+v, want Friday", got)
	}
	hers.readUntil(func(m *wire.ClientStreamEvent) bool { return m.GetEvent().GetType() == "question_answered" })
	if code, _, stderr := run(t, "answer", q.GetQuestionId(), "Monday", "--hub", c.URL); code != command.ExitFailed || !strings.Contains(stderr, "has been settled") {
		t.Errorf("a second answer at c: got %d and %q, want a conflict", code, stderr)
	}

	call = asker.call("ask_user", input)
	received = hers.readUntil(asked)
	q = received[len(received)-1].GetUserQuestion()
	if got, err := ada.AnswerQuestion(t.Context(), &wire.AnswerQuestionRequest{AgentId: "asker", QuestionId: q.GetQuestionId(), Selected: []string{"Monday"}}); err != nil || !got.GetSuccess() {
		t.Errorf("an answer of a Coven client at c: got %v and %v, want it taken", got, err)
	}
	if got := call.wait(t); !sameJSON(got.Data, []byte(`{"answered":true,"selected":["Monday"]}`)) {
		t.Errorf("the agent at b got %+v, want Monday", got)
	}

	hers.close() // who has read the list at a, and later at c, counts as present
	call = asker.call("ask_user", input)
	id := c.openQuestion(q.GetQuestionId())
	if code, out, stderr := run(t, "answer", id, "Friday", "--hub", c.URL); code != command.ExitDone {
		t.Errorf("dragoman answer at c: got %d, %q and %q, want it taken", code, out, stderr)
	}
	if got := call.wait(t); !sameJSON(got.Data, []byte(`{"answered":true,"selected":["Friday"]}`)) {
		t.Errorf("the agent at b got %+v, want Friday", got)
	}

	asker.call("ask_user", input)
	id = a.openQuestion(id)
	return func() {
		for _, h := range []*clusterHub{a, c} {
			h.until(h.name+" has withdrawn the question of b", func() error {
				if code, out, stderr := run(t, "questions", "--hub", h.URL); code != command.ExitDone || strings.Contains(out, id) {
					return fmt.Errorf("got %d, %q and %q", code, out, stderr)
				}
				return nil
			})
		}
	}
}

// A pack is at b. An agent at c calls its tool, and once more when b dies.
func aToolIsCalled(t *testing.T, all hubCluster) (disconnected func()) {
	t.Helper()
	a, b, c := all[0], all[1], all[2]
	pack, err := registerPackAt(t, b.grpc, &wire.PackManifest{PackId: "kit", Version: "1", Tools: []*wire.ToolDefinition{definition("cut")}})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range all {
		h.until("hub "+h.name+" lists the pack", func() error {
			if code, out, stderr := run(t, "packs", "--hub", h.URL); code != command.ExitDone || !strings.Contains(out, "kit") {
				return fmt.Errorf("got %d, %q and %q", code, out, stderr)
			}
			return nil
		})
	}
	if _, err := registerPackAt(t, a.grpc, &wire.PackManifest{PackId: "kit", Version: "1"}); err == nil {
		t.Error("a second pack of the id at another hub: got no error, want a conflict")
	}
	agent := connectCovenAgentAt(t, c.grpc, "worker")
	t.Cleanup(agent.leave)
	for _, h := range all { // the answer of a pack may come to another hub than its stream
		call := agent.call("cut", map[string]any{"at": 3})
		given := pack.nextCall()
		if given.GetToolName() != "cut" || !sameJSON([]byte(given.GetInputJson()), []byte(`{"at":3}`)) {
			t.Errorf("the pack got %v, want the call", given)
		}
		packAt(t, h.grpc).answer(given.GetRequestId(), `{"done":"`+h.name+`"}`)
		if got := call.wait(t); !sameJSON(got.Data, []byte(`{"done":"`+h.name+`"}`)) {
			t.Errorf("answered at %s: the agent got %+v, want the answer of the tool", h.name, got)
		}
		packAt(t, h.grpc).answer(given.GetRequestId(), `{}`) // nobody waits any more
	}
	call := agent.call("cut", map[string]any{"at": 4})
	pack.nextCall()
	return func() {
		if got := call.wait(t); got.Code != "pack disconnected" { // as Coven calls it
			t.Errorf("the hub of the pack died: got %+v, want the pack disconnected", got)
		}
	}
}

// Who subscribes at one hub gets what is published at another, and goes on at a third one.
func noticesReachEveryHub(t *testing.T, all hubCluster) {
	t.Helper()
	a, b, c := all[0], all[1], all[2]
	ctx := t.Context()
	publisher := connectNativeAt(t, a, "publisher", nil)
	publish := func(topic string) string {
		t.Helper()
		v, _, err := publisher.Follow(ctx, &core.Open{Request: &core.Request{Intent: core.IntentNotify, To: core.ToHub(), Notice: &core.Notice{Topic: topic}}}, nativewire.With{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		id, _ := v.Get("task").Text()
		var state string
		a.until("the notice has its end", func() error {
			var one struct{ State string }
			if err := a.Get(ctx, "/v1/tasks/"+id, &one); err != nil {
				return err
			}
			if state = one.State; state != "done" && state != "failed" {
				return fmt.Errorf("it is %s", state)
			}
			return nil
		})
		return state
	}
	if got := publish("family.none"); got != "failed" {
		t.Errorf("nobody subscribes at any hub: the notice is %s, want it failed", got)
	}
	topics := make(chan string, 10)
	subscribe := func(h *clusterHub) *nativeclient.Client {
		t.Helper()
		s := connectNativeAt(t, h, "reader", topics)
		if _, err := s.Call(ctx, core.Subscribe{Topics: []string{"family.*"}}, nativewire.With{Resume: true}); err != nil {
			t.Fatal(err)
		}
		return s
	}
	want := func(topic string, again ...string) { // what may come again, before or after it
		t.Helper()
		for late := time.After(watchdog); ; {
			select {
			case got := <-topics:
				if got == topic {
					return
				}
				if !slices.Contains(again, got) {
					t.Errorf("got %s, want %s", got, topic)
				}
			case <-late:
				t.Fatalf("%s has not come", topic)
			}
		}
	}
	reader := subscribe(b)
	if got := publish("family.one"); got != "done" {
		t.Errorf("somebody subscribes at b: the notice is %s, want it done", got)
	}
	want("family.one")
	reader.Close()
	if got := publish("family.two"); got != "done" {
		t.Errorf("the subscriber is away: the notice is %s, want it done", got)
	}
	subscribe(c)
	want("family.two", "family.one") // which was the last that came
	publish("family.three")
	want("family.three", "family.one")
}

// connectNativeAt connects a client of the native dialect under a name to a hub. The topics of the notices that it gets
// go to topics, unless that is nil.
func connectNativeAt(t *testing.T, h *clusterHub, name string, topics chan<- string) *nativeclient.Client {
	t.Helper()
	c := nativeclient.New(context.Background(), dialFrames(t, strings.TrimPrefix(h.URL, "http://"), "/ws/native?agent_id="+name, client.MaxNativeBytes), nativeclient.Options{
		Event: func(told nativewire.Told) {
			if b, ok := told.Event.Body.(core.Opened); ok && told.Role == "subscriber" && topics != nil {
				topics <- b.Request.Notice.Topic
			}
		},
	})
	t.Cleanup(c.Close)
	return c
}

// An answer that nobody has read is streamed to the client that opens the conversation first, at
// whichever hub. A later one finds it in the history, at whichever hub.
func anAnswerIsUnreadAtEveryHub(t *testing.T, all hubCluster) {
	t.Helper()
	joinWorker(t, all[1], "guide")
	for _, h := range all {
		h.until("the agent is known at "+h.name, func() error { return h.Get(t.Context(), "/v1/agents/guide", &struct{}{}) })
	}
	var history []string
	for i, h := range all {
		asked := "say " + h.name
		answer := strings.ToUpper(asked)
		connectCovenClient(t, h.grpc).send("guide", asked)
		h.until("it is answered", func() error {
			if got := h.thread("guide"); !strings.Contains(got, answer) {
				return fmt.Errorf("the thread has %q", got)
			}
			return nil
		})
		opened := func(n int, last string) []string {
			reader := connectCovenClient(t, all[(i+n)%len(all)].grpc).open("guide", "")
			defer reader.close()
			return describe(reader.readUntil(func(m *wire.ClientStreamEvent) bool {
				return isDone(m) || describe([]*wire.ClientStreamEvent{m})[0] == last
			}))
		}
		asks, message := "asked: "+asked, "message: "+answer
		if got, want := opened(1, message), append(slices.Clone(history), asks, "text: "+answer, "done: "+answer); !slices.Equal(got, want) {
			t.Errorf("sent at %s, the first reader: got %q, want %q", h.name, got, want)
		}
		history = append(history, asks, message)
		h.until("it is history", func() error { // once the other hub knows that the first one has got it
			if got := opened(2, message); !slices.Equal(got, history) {
				return fmt.Errorf("a later reader: got %q, want %q", got, history)
			}
			return nil
		})
	}
}
