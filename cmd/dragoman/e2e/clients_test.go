package e2e

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

// A client is disconnected in the middle of an answer. It comes back with the id of the last event
// it has, and gets exactly the rest.
func TestAReconnectedClientGetsExactlyTheRest(t *testing.T) {
	for _, dialect := range []string{coven.Name, parallax.Dialect, acp.Dialect} {
		t.Run(dialect, func(t *testing.T) {
			h := newTestHub(t, nil)
			h.startAgent(t, dialect, "guide", 1)
			key := h.key()
			ada := connectCovenClient(t, h.service.Addresses().GRPC)
			first := ada.open("guide", "")
			id := ada.send("guide", "hang "+key)
			received := first.readUntil(textUntil(firstHalf))
			first.close()
			if got := received[0].GetEvent(); got.GetId() != id || got.GetText() != "hang "+key || got.GetAuthor() != "client" {
				t.Errorf("got %v first, want the message that was sent, under its id %s", got, id)
			}
			h.signal(key+" released", nil)
			h.end(t, key)

			rest := ada.open("guide", received[len(received)-1].GetEventId()).readUntil(isDone)
			if d := cmp.Diff([]string{"text: " + secondHalf, "done: " + firstHalf + secondHalf}, describe(rest)); d != "" {
				t.Errorf("behind the last id (-want +got):\n%s", d)
			}
			whole := ada.open("guide", id).readUntil(isDone)
			if d := cmp.Diff([]string{"text: " + firstHalf + secondHalf, "done: " + firstHalf + secondHalf}, describe(whole)); d != "" {
				t.Errorf("behind the message (-want +got):\n%s", d)
			}
		})
	}
}

// A client that opens the stream after the answer has ended gets the answer as it was streamed. A
// later one finds it in the history.
func TestAnUnreadAnswerIsStreamedToTheNextClient(t *testing.T) {
	h := newTestHub(t, nil)
	h.startAgent(t, coven.Name, "guide", 1)
	ada := connectCovenClient(t, h.service.Addresses().GRPC)
	key := h.key()
	ada.send("guide", "say "+key)
	h.end(t, key)
	answer := shortAnswer(key)
	if d := cmp.Diff([]string{"asked: say " + key, "text: " + answer, "done: " + answer}, describe(ada.open("guide", "").readUntil(isDone))); d != "" {
		t.Errorf("opened after the end (-want +got):\n%s", d)
	}
	late := ada.open("guide", "")
	before := describe(late.readUntil(func(m *wire.ClientStreamEvent) bool {
		return strings.HasPrefix(describe([]*wire.ClientStreamEvent{m})[0], "message: ")
	}))
	again := h.key()
	ada.send("guide", "say "+again)
	want := []string{
		"asked: say " + key, "message: " + answer,
		"asked: say " + again, "text: " + shortAnswer(again), "done: " + shortAnswer(again),
	}
	if d := cmp.Diff(want, append(before, describe(late.readUntil(isDone))...)); d != "" {
		t.Errorf("opened after it was read (-want +got):\n%s", d)
	}
}

// coven-admin's chat sends a message, opens the stream without an id and stops at the first done.
// It gets the answer to that message, also if nobody read the previous answer and if the previous
// request is still running.
func TestAClientThatStopsAtTheFirstDoneGetsItsOwnAnswer(t *testing.T) {
	h := newTestHub(t, nil)
	h.startAgent(t, coven.Name, "guide", 2)
	ada := connectCovenClient(t, h.service.Addresses().GRPC)
	unread, runs := h.key(), h.key()
	ada.send("guide", "say "+unread)
	h.end(t, unread)
	ada.send("guide", "hang "+runs)
	h.await(t, runs+" begun")
	for range 3 {
		key := h.key()
		ada.send("guide", "say "+key)
		stream := ada.open("guide", "")
		received := describe(stream.readUntil(isDone))
		stream.close()
		want := []string{"asked: say " + key, "text: " + shortAnswer(key), "done: " + shortAnswer(key)}
		if d := cmp.Diff(want, received[max(0, len(received)-len(want)):]); d != "" {
			t.Errorf("of %v, the last (-want +got):\n%s", received, d)
		}
		for _, before := range received[:max(0, len(received)-len(want))] {
			if !strings.HasPrefix(before, "asked: ") && !strings.HasPrefix(before, "message: ") {
				t.Errorf("got %q before its own message, want history alone", before)
			}
		}
	}
	h.signal(runs+" released", nil)
	h.end(t, runs)
}

// An operator reads a conversation of somebody else. The requester still gets the answer as a
// stream, and the operator begins at its own message.
func TestAnAnswerReadByAnOperatorIsStillStreamedToItsRequester(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "alice", "root") })
	agent := h.joinAgent(t, "guide")
	p := connectCovenClient(t, h.service.Addresses().GRPC)
	alice, root := p.withToken("alice"), p.withToken("root")
	root.send("guide", "ask first")
	own := agent.nextTask()
	alice.send("guide", "ask second")
	hers := agent.nextTask()
	agent.report(hers, core.Done{Text: "hers"})
	agent.report(own, core.Done{Text: "his"})
	want := []string{"asked: ask first", "text: his", "done: his", "asked: ask second", "text: hers", "done: hers"}
	stream := root.open("guide", "")
	if d := cmp.Diff(want, append(describe(stream.readUntil(isDone)), describe(stream.readUntil(isDone))...)); d != "" {
		t.Errorf("the operator (-want +got):\n%s", d)
	}
	if d := cmp.Diff(want[3:], describe(alice.open("guide", "").readUntil(isDone))); d != "" {
		t.Errorf("the requester (-want +got):\n%s", d)
	}
}

// Two people talk with one agent. Both get both answers in the same order.
func TestTwoClientsShareAConversation(t *testing.T) {
	h := newTestHub(t, nil)
	h.startAgent(t, coven.Name, "guide", 2)
	ada, bob := connectCovenClient(t, h.service.Addresses().GRPC), connectCovenClient(t, h.service.Addresses().GRPC)
	adaStream, bobStream := ada.open("guide", ""), bob.open("guide", "")
	one, two := h.key(), h.key()
	ada.send("guide", "hang "+one)
	h.await(t, one+" begun")
	bob.send("guide", "say "+two)
	h.end(t, two)
	h.signal(one+" released", nil)

	want := []string{
		"asked: hang " + one, "text: " + firstHalf + secondHalf, "done: " + firstHalf + secondHalf,
		"asked: say " + two, "text: " + shortAnswer(two), "done: " + shortAnswer(two),
	}
	for who, e := range map[string]*eventStream{"ada": adaStream, "bob": bobStream} {
		e.readUntil(isDone)
		e.readUntil(isDone)
		if d := cmp.Diff(want, describe(e.events)); d != "" {
			t.Errorf("%s (-want +got):\n%s", who, d)
		}
	}
	for _, limit := range []int32{1, 3, 500} {
		events := bob.history("guide", limit)
		wantOrdered(t, events)
		var got []string
		for _, e := range events {
			got = append(got, describeStored(e))
		}
		want := []string{"asked: hang " + one, "message: " + firstHalf + secondHalf, "asked: say " + two, "message: " + shortAnswer(two)}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("in pages of %d (-want +got):\n%s", limit, d)
		}
	}
}

// A pi session, a REST caller and a Coven client share a thread: the client gets the requests of
// all of them, and the agent gets their history.
func TestAPiSessionARestCallerAndACovenClientShareAThread(t *testing.T) {
	h := newTestHub(t, nil)
	h.startAgent(t, parallax.Dialect, "guide", 1) // it is stateless
	pi := piOverWebSocket().connect(t, h, "pi").(*piClient)
	defer pi.leave()
	first := h.key()
	pi.begin(query{to: "guide", content: "say " + first}).wait(t)
	thread := h.await(t, first+" begun").(core.Request).Thread
	ada := connectCovenClient(t, h.service.Addresses().GRPC)
	hers := ada.open(string(thread), "")
	second, third := h.key(), h.key()
	ada.send(string(thread), "say "+second)
	h.end(t, second)
	rest := &client.Client{URL: h.url(), HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	var task map[string]any
	asked := map[string]any{"to": "guide", "content": "say " + third, "thread": thread}
	if err := rest.Post(t.Context(), "/v1/tasks?wait=true", asked, &task); err != nil {
		t.Fatal(err)
	}
	hers.readUntil(isDone)
	hers.readUntil(isDone)
	want := []string{
		"asked: say " + first, "message: " + shortAnswer(first),
		"asked: say " + second, "text: " + shortAnswer(second), "done: " + shortAnswer(second),
		"asked: say " + third, "text: " + shortAnswer(third), "done: " + shortAnswer(third),
	}
	if d := cmp.Diff(want, describe(hers.events)); d != "" {
		t.Errorf("the client (-want +got):\n%s", d)
	}
	var received []string
	for _, turn := range h.await(t, third+" begun").(core.Request).History {
		received = append(received, turn.Text)
	}
	if d := cmp.Diff([]string{"say " + first, shortAnswer(first), "say " + second, shortAnswer(second)}, received); d != "" {
		t.Errorf("the agent's history (-want +got):\n%s", d)
	}
}

func TestARepeatedMessageIsDeliveredOnce(t *testing.T) {
	h := newTestHub(t, nil)
	h.startAgent(t, coven.Name, "guide", 1)
	ada := connectCovenClient(t, h.service.Addresses().GRPC)
	key := h.key()
	m := &wire.ClientSendMessageRequest{ConversationKey: "guide", Content: "say " + key, IdempotencyKey: "once"}
	type answer struct {
		*wire.ClientSendMessageResponse
		error
	}
	const times = 16
	answers := make(chan answer, times)
	for range times {
		go func() {
			r, err := ada.SendMessage(t.Context(), m)
			answers <- answer{r, err}
		}()
	}
	accepted, ids := 0, map[string]bool{}
	for range times {
		got := <-answers
		if got.error != nil {
			t.Fatal(got.error)
		}
		ids[got.GetMessageId()] = true
		if got.GetStatus() == "accepted" {
			accepted++
		}
	}
	if accepted != 1 || len(ids) != 1 {
		t.Errorf("got %d accepted under %d ids, want one", accepted, len(ids))
	}
	h.end(t, key)
	if got := ada.history("guide", 500); len(got) != 2 {
		t.Errorf("got %v, want one question and its answer", got)
	}
	m.Content = "say something else"
	if _, err := ada.SendMessage(t.Context(), m); status.Code(err) != codes.InvalidArgument {
		t.Errorf("another message under the key: got %v, want %v", err, codes.InvalidArgument)
	}
	unsent := &wire.ClientSendMessageRequest{ConversationKey: "nobody", Content: "hello", IdempotencyKey: "twice"}
	for range 2 {
		if _, err := ada.SendMessage(t.Context(), unsent); status.Code(err) != codes.NotFound || status.Convert(err).Message() != "agent not found" {
			t.Errorf("to nobody: got %v, want it not found each time", err)
		}
	}
}

func TestAttachmentsReachTheAgent(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	h.startAgent(t, coven.Name, "guide", 1)
	ada := connectCovenClient(t, h.service.Addresses().GRPC)
	key := h.key()
	data := make([]byte, 1<<20)
	ada.send("guide", "say "+key, &wire.FileAttachment{Filename: "a.bin", MimeType: "application/x-a", Data: data})
	got := h.await(t, key+" begun").(core.Request)
	want := []core.File{{Name: "a.bin", MediaType: "application/x-a", Data: data}}
	if d := cmp.Diff(want, got.Attachments); d != "" {
		t.Errorf("(-want +got):\n%.300s", d)
	}
	h.end(t, key)
	if got, want := ada.history("guide", 500)[0].GetText(), "say "+key+"\n\nAttached: a.bin (application/x-a, 1048576 bytes)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Invalid calls are refused with the texts and codes that clients know.
func TestInvalidClientCallsAreRefusedAsInTheReference(t *testing.T) {
	h := newTestHub(t, nil)
	h.startAgent(t, coven.Name, "guide", 1)
	ada := connectCovenClient(t, h.service.Addresses().GRPC)
	send := func(recording, content, key string) func() error {
		return func() error {
			_, err := ada.SendMessage(t.Context(), &wire.ClientSendMessageRequest{ConversationKey: recording, Content: content, IdempotencyKey: key})
			return err
		}
	}
	events := func(r *wire.GetEventsRequest) func() error {
		return func() error {
			_, err := ada.GetEvents(t.Context(), r)
			return err
		}
	}
	stream := func(recording string, since *string) func() error {
		return func() error {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			st, err := ada.StreamEvents(ctx, &wire.StreamEventsRequest{ConversationKey: recording, SinceEventId: since})
			if err != nil {
				return err
			}
			_, err = st.Recv()
			return err
		}
	}
	register := func(name, fingerprint string) func() error {
		return func() error {
			_, err := ada.RegisterAgent(t.Context(), &wire.RegisterAgentRequest{DisplayName: name, Fingerprint: fingerprint})
			_, err2 := ada.RegisterClient(t.Context(), &wire.RegisterClientRequest{DisplayName: name, Fingerprint: fingerprint})
			if status.Convert(err).Message() != status.Convert(err2).Message() {
				t.Errorf("got %v for an agent and %v for a client, want the same", err, err2)
			}
			return err
		}
	}
	bad, long := "soon", strings.Repeat("k", 513)
	ids := h.service.Hub().ID()
	for name, tt := range map[string]struct {
		call func() error
		text string
	}{
		"no idempotency key":              {send("guide", "hello", ""), "idempotency_key required"},
		"a long idempotency key":          {send("guide", "hello", strings.Repeat("k", 101)), "idempotency_key too long"},
		"no conversation":                 {send("", "hello", "k"), "conversation_key required"},
		"a long conversation":             {send(long, "hello", "k"), "conversation_key too long"},
		"no content":                      {send("guide", "", "k"), "content required"},
		"events without a conversation":   {events(&wire.GetEventsRequest{}), "conversation_key required"},
		"since no time":                   {events(&wire.GetEventsRequest{ConversationKey: "guide", Since: &bad}), "invalid since timestamp"},
		"until no time":                   {events(&wire.GetEventsRequest{ConversationKey: "guide", Until: &bad}), "invalid until timestamp"},
		"a cursor that is none":           {events(&wire.GetEventsRequest{ConversationKey: "guide", Cursor: &bad}), "invalid cursor"},
		"a stream without a conversation": {stream("", nil), "conversation_key required"},
		"a stream since nothing":          {stream("guide", &bad), "invalid since_event_id"},
		"a stream since another id":       {stream("guide", &ids), "invalid since_event_id"},
		"no display name":                 {register("", "x"), "display_name required"},
		"a blank display name":            {register(" ", "x"), "display_name cannot be only whitespace"},
		"a long display name":             {register(strings.Repeat("n", 101), "x"), "display_name exceeds 100 characters"},
		"an odd display name":             {register("a/b", "x"), "display_name contains invalid characters (allowed: alphanumeric, hyphens, underscores, periods, spaces)"},
		"no fingerprint":                  {register("a", ""), "fingerprint required"},
		"a short fingerprint":             {register("a", "ab"), "fingerprint must be 64 hex characters (SHA256)"},
		"a fingerprint of letters":        {register("a", strings.Repeat("z", 64)), "fingerprint must be valid hex characters"},
		"a decision without an agent": {func() error {
			_, err := ada.ApproveTool(t.Context(), &wire.ApproveToolRequest{ToolId: "t"})
			return err
		}, "agent_id required"},
		"a decision without a tool": {func() error {
			_, err := ada.ApproveTool(t.Context(), &wire.ApproveToolRequest{AgentId: "guide"})
			return err
		}, "tool_id required"},
	} {
		if err := tt.call(); status.Code(err) != codes.InvalidArgument || !strings.HasPrefix(status.Convert(err).Message(), tt.text) {
			t.Errorf("%s: got %v, want %v %q", name, err, codes.InvalidArgument, tt.text)
		}
	}
	for agent, want := range map[string]string{"nobody": "agent not found", "guide": "no tool call t of this agent waits for a decision"} {
		got, err := ada.ApproveTool(t.Context(), &wire.ApproveToolRequest{AgentId: agent, ToolId: "t"})
		if err != nil || got.GetSuccess() || got.GetError() != want {
			t.Errorf("a decision for %s: got %v and %v, want %q", agent, got, err, want)
		}
	}
	// The agent still works.
	key := h.key()
	ada.send("guide", "say "+key)
	h.end(t, key)
}

func TestAClientListsItselfAndTheAgents(t *testing.T) {
	h := newTestHub(t, nil)
	h.startAgent(t, parallax.Dialect, "b", 1)
	h.startAgent(t, coven.Name, "a", 1)
	ada := connectCovenClient(t, h.service.Addresses().GRPC)
	me, err := ada.GetMe(t.Context(), &emptypb.Empty{})
	if err != nil || me.GetPrincipalId() == "" || me.GetStatus() != "approved" || len(me.GetRoles()) != 1 {
		t.Errorf("got %v and %v, want an approved principal with a role", me, err)
	}
	list, err := ada.ListAgents(t.Context(), &wire.ListAgentsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range list.GetAgents() {
		got = append(got, a.GetId()+" "+a.GetBackend())
		if !a.GetConnected() {
			t.Errorf("got %v, want it connected", a)
		}
	}
	if d := cmp.Diff([]string{"a ", "b parallax"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	nowhere := "nowhere"
	if list, err = ada.ListAgents(t.Context(), &wire.ListAgentsRequest{Workspace: &nowhere}); err != nil || len(list.GetAgents()) != 0 {
		t.Errorf("in another workspace: got %v and %v, want none", list, err)
	}
	finger := strings.Repeat("0a", 32)
	r, err := ada.RegisterAgent(t.Context(), &wire.RegisterAgentRequest{DisplayName: "a", Fingerprint: finger})
	if err != nil || r.GetStatus() != "approved" || r.GetPrincipalId() != "a" {
		t.Errorf("got %v and %v, want it approved as a", r, err)
	}
}

// An agent asks a question of the clients of its conversation and waits for the answer.
func TestAnAgentAsksAQuestionOfItsClients(t *testing.T) {
	h := newTestHub(t, nil)
	asker := connectCovenAgentWith(t, h, "asker", "ui")
	defer asker.leave()
	ada := connectCovenClient(t, h.service.Addresses().GRPC)
	input := map[string]any{"question": "Which day?", "options": []any{map[string]any{"label": "Monday"}, map[string]any{"label": "Friday", "description": "the last"}}}
	if got := asker.call("ask_user", input).wait(t); got.Code != "unsupported" || got.Message != "failed to send question: no connected clients for agent asker" {
		t.Errorf("without a client: got %+v, want it refused", got)
	}
	hers := ada.open("asker", "")
	call := asker.call("ask_user", input)
	received := hers.readUntil(func(m *wire.ClientStreamEvent) bool { return m.GetUserQuestion() != nil })
	q := received[len(received)-1].GetUserQuestion()
	if q.GetQuestion() != "Which day?" || len(q.GetOptions()) != 2 || q.GetAgentId() != "asker" || q.GetTimeoutSeconds() != 60 {
		t.Errorf("got %v, want the question with both options", q)
	}
	for name, tt := range map[string]struct {
		answer *wire.AnswerQuestionRequest
		want   string
	}{
		"another question": {&wire.AnswerQuestionRequest{AgentId: "asker", QuestionId: "q", Selected: []string{"Friday"}}, "no pending question with ID q"},
		"another agent":    {&wire.AnswerQuestionRequest{AgentId: "guide", QuestionId: q.GetQuestionId(), Selected: []string{"Friday"}}, "question " + q.GetQuestionId() + " is not one of agent guide"},
		"nothing":          {&wire.AnswerQuestionRequest{AgentId: "asker", QuestionId: q.GetQuestionId()}, "at least one selection or custom_text is required"},
		"too much":         {&wire.AnswerQuestionRequest{AgentId: "asker", QuestionId: q.GetQuestionId(), Selected: []string{"Friday", "Monday"}}, "one selection is allowed"},
		"another day":      {&wire.AnswerQuestionRequest{AgentId: "asker", QuestionId: q.GetQuestionId(), Selected: []string{"Sunday"}}, `"Sunday" is none of the options: Monday, Friday`},
	} {
		if got, err := ada.AnswerQuestion(t.Context(), tt.answer); err != nil || got.GetSuccess() || got.GetError() != tt.want {
			t.Errorf("%s: got %v and %v, want %q", name, got, err, tt.want)
		}
	}
	answer := &wire.AnswerQuestionRequest{AgentId: "asker", QuestionId: q.GetQuestionId(), Selected: []string{"Friday"}}
	if got, err := ada.AnswerQuestion(t.Context(), answer); err != nil || !got.GetSuccess() {
		t.Fatalf("got %v and %v, want it to count", got, err)
	}
	if got := call.wait(t); got.End != "output" || !sameJSON(got.Data, []byte(`{"answered":true,"selected":["Friday"]}`)) {
		t.Errorf("got %+v, want what was chosen", got)
	}
	if got, _ := ada.AnswerQuestion(t.Context(), answer); got.GetSuccess() {
		t.Errorf("answered again: got %v, want it refused", got)
	}
	input["timeout_seconds"] = 1
	if got := asker.call("ask_user", input).wait(t); !sameJSON(got.Data, []byte(`{"answered":false,"reason":"timeout"}`)) {
		t.Errorf("without an answer: got %+v, want a timeout", got)
	}
	for _, field := range []string{"AgentId", "QuestionId"} {
		r := &wire.AnswerQuestionRequest{AgentId: "a", QuestionId: "q"}
		want := "question_id required"
		if field == "AgentId" {
			r.AgentId, want = "", "agent_id required"
		} else {
			r.QuestionId = ""
		}
		if _, err := ada.AnswerQuestion(t.Context(), r); status.Convert(err).Message() != want {
			t.Errorf("without %s: got %v, want %q", field, err, want)
		}
	}
}
