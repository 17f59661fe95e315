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

// A client listens, speaks, is cut off in the middle of the answer, comes back with
// the last id that it has, and hears exactly the rest.
func TestAClientThatComesBackHearsExactlyTheRest(t *testing.T) {
	for _, dialect := range []string{coven.Name, parallax.Dialect, acp.Dialect} {
		t.Run(dialect, func(t *testing.T) {
			s := newStage(t, nil)
			s.cast(t, dialect, "guide", 1)
			key := s.key()
			ada := arrive(t, s.service.Addresses().GRPC)
			first := ada.listens("guide", "")
			id := ada.says("guide", "hang "+key)
			heard := first.hears(textUntil(firstHalf))
			first.leaves()
			if got := heard[0].GetEvent(); got.GetId() != id || got.GetText() != "hang "+key || got.GetAuthor() != "client" {
				t.Errorf("got %v first, want the message that was sent, under its id %s", got, id)
			}
			s.post(key+" released", nil)
			s.end(t, key)

			rest := ada.listens("guide", heard[len(heard)-1].GetEventId()).hears(isDone)
			if d := cmp.Diff([]string{"text: " + secondHalf, "done: " + firstHalf + secondHalf}, inWords(rest)); d != "" {
				t.Errorf("behind the last id (-want +got):\n%s", d)
			}
			whole := ada.listens("guide", id).hears(isDone)
			if d := cmp.Diff([]string{"text: " + firstHalf + secondHalf, "done: " + firstHalf + secondHalf}, inWords(whole)); d != "" {
				t.Errorf("behind the message (-want +got):\n%s", d)
			}
		})
	}
}

// A client that opens the stream after it has inWords, even after it was answered,
// hears the answer as it was said; one that comes later finds it among what was said.
func TestAnAnswerThatNobodyHeardIsNews(t *testing.T) {
	s := newStage(t, nil)
	s.cast(t, coven.Name, "guide", 1)
	ada := arrive(t, s.service.Addresses().GRPC)
	key := s.key()
	ada.says("guide", "say "+key)
	s.end(t, key)
	words := fewWords(key)
	if d := cmp.Diff([]string{"asked: say " + key, "text: " + words, "done: " + words}, inWords(ada.listens("guide", "").hears(isDone))); d != "" {
		t.Errorf("opened behind the end (-want +got):\n%s", d)
	}
	late := ada.listens("guide", "")
	before := inWords(late.hears(func(m *wire.ClientStreamEvent) bool {
		return strings.HasPrefix(inWords([]*wire.ClientStreamEvent{m})[0], "message: ")
	}))
	again := s.key()
	ada.says("guide", "say "+again)
	want := []string{
		"asked: say " + key, "message: " + words,
		"asked: say " + again, "text: " + fewWords(again), "done: " + fewWords(again),
	}
	if d := cmp.Diff(want, append(before, inWords(late.hears(isDone))...)); d != "" {
		t.Errorf("opened once it was heard (-want +got):\n%s", d)
	}
}

// coven-admin's chat sends a message, opens the stream without an id and stops at the
// first done. It hears the answer to that message, also where nobody heard the one
// before and where the one before still runs.
func TestAClientThatStopsAtItsFirstDoneHearsItsOwnAnswer(t *testing.T) {
	s := newStage(t, nil)
	s.cast(t, coven.Name, "guide", 2)
	ada := arrive(t, s.service.Addresses().GRPC)
	unheard, runs := s.key(), s.key()
	ada.says("guide", "say "+unheard)
	s.end(t, unheard)
	ada.says("guide", "hang "+runs)
	s.await(t, runs+" begun")
	for range 3 {
		key := s.key()
		ada.says("guide", "say "+key)
		stream := ada.listens("guide", "")
		heard := inWords(stream.hears(isDone))
		stream.leaves()
		want := []string{"asked: say " + key, "text: " + fewWords(key), "done: " + fewWords(key)}
		if d := cmp.Diff(want, heard[max(0, len(heard)-len(want)):]); d != "" {
			t.Errorf("of %v, the last (-want +got):\n%s", heard, d)
		}
		for _, before := range heard[:max(0, len(heard)-len(want))] {
			if !strings.HasPrefix(before, "asked: ") && !strings.HasPrefix(before, "message: ") {
				t.Errorf("got %q before its own message, want history alone", before)
			}
		}
	}
	s.post(runs+" released", nil)
	s.end(t, runs)
}

// An operator listens to a conversation of somebody else. Whoever asked still hears the
// answer as news, and the operator begins at its own message.
func TestAnAnswerIsNewsToWhoAskedWhoeverElseHeardIt(t *testing.T) {
	s := newStage(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "alice", "root") })
	agent := s.worker(t, "guide")
	p := arrive(t, s.service.Addresses().GRPC)
	alice, root := p.as("alice"), p.as("root")
	root.says("guide", "ask first")
	own := agent.given()
	alice.says("guide", "ask second")
	hers := agent.given()
	agent.says(hers, core.Done{Text: "hers"})
	agent.says(own, core.Done{Text: "his"})
	want := []string{"asked: ask first", "text: his", "done: his", "asked: ask second", "text: hers", "done: hers"}
	stream := root.listens("guide", "")
	if d := cmp.Diff(want, append(inWords(stream.hears(isDone)), inWords(stream.hears(isDone))...)); d != "" {
		t.Errorf("the operator (-want +got):\n%s", d)
	}
	if d := cmp.Diff(want[3:], inWords(alice.listens("guide", "").hears(isDone))); d != "" {
		t.Errorf("who asked (-want +got):\n%s", d)
	}
}

// Two people talk with one agent: each hears both, in one order, and reads the same.
func TestTwoClientsShareAConversation(t *testing.T) {
	s := newStage(t, nil)
	s.cast(t, coven.Name, "guide", 2)
	ada, bob := arrive(t, s.service.Addresses().GRPC), arrive(t, s.service.Addresses().GRPC)
	hers, his := ada.listens("guide", ""), bob.listens("guide", "")
	one, two := s.key(), s.key()
	ada.says("guide", "hang "+one)
	s.await(t, one+" begun")
	bob.says("guide", "say "+two)
	s.end(t, two)
	s.post(one+" released", nil)

	want := []string{
		"asked: hang " + one, "text: " + firstHalf + secondHalf, "done: " + firstHalf + secondHalf,
		"asked: say " + two, "text: " + fewWords(two), "done: " + fewWords(two),
	}
	for who, e := range map[string]*ear{"ada": hers, "bob": his} {
		e.hears(isDone)
		e.hears(isDone)
		if d := cmp.Diff(want, inWords(e.heard)); d != "" {
			t.Errorf("%s (-want +got):\n%s", who, d)
		}
	}
	for _, limit := range []int32{1, 3, 500} {
		events := bob.recalls("guide", limit)
		inOrder(t, events)
		var got []string
		for _, e := range events {
			got = append(got, remembered(e))
		}
		want := []string{"asked: hang " + one, "message: " + firstHalf + secondHalf, "asked: say " + two, "message: " + fewWords(two)}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("in pages of %d (-want +got):\n%s", limit, d)
		}
	}
}

// A pi session, a REST caller and a Coven client are in one conversation: the client
// hears what each asked, and the agent is told of all of it.
func TestAPiSessionARestCallerAndACovenClientShareAThread(t *testing.T) {
	s := newStage(t, nil)
	s.cast(t, parallax.Dialect, "guide", 1) // it keeps no memory of its own
	pi := piOverWebSocket().connect(t, s, "pi").(*piClient)
	defer pi.leave()
	first := s.key()
	pi.begin(inquiry{to: "guide", content: "say " + first}).outcome(t)
	thread := s.await(t, first+" begun").(core.Request).Thread
	ada := arrive(t, s.service.Addresses().GRPC)
	hers := ada.listens(string(thread), "")
	second, third := s.key(), s.key()
	ada.says(string(thread), "say "+second)
	s.end(t, second)
	rest := &client.Client{URL: "http://" + s.service.Addresses().HTTP, HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	var task map[string]any
	asked := map[string]any{"to": "guide", "content": "say " + third, "thread": thread}
	if err := rest.Post(t.Context(), "/v1/tasks?wait=true", asked, &task); err != nil {
		t.Fatal(err)
	}
	hers.hears(isDone)
	hers.hears(isDone)
	want := []string{
		"asked: say " + first, "message: " + fewWords(first),
		"asked: say " + second, "text: " + fewWords(second), "done: " + fewWords(second),
		"asked: say " + third, "text: " + fewWords(third), "done: " + fewWords(third),
	}
	if d := cmp.Diff(want, inWords(hers.heard)); d != "" {
		t.Errorf("the client (-want +got):\n%s", d)
	}
	var told []string
	for _, turn := range s.await(t, third+" begun").(core.Request).History {
		told = append(told, turn.Text)
	}
	if d := cmp.Diff([]string{"say " + first, fewWords(first), "say " + second, fewWords(second)}, told); d != "" {
		t.Errorf("the agent, of what was said before (-want +got):\n%s", d)
	}
}

func TestAMessageSentAgainIsSaidOnce(t *testing.T) {
	s := newStage(t, nil)
	s.cast(t, coven.Name, "guide", 1)
	ada := arrive(t, s.service.Addresses().GRPC)
	key := s.key()
	m := &wire.ClientSendMessageRequest{ConversationKey: "guide", Content: "say " + key, IdempotencyKey: "once"}
	type told struct {
		*wire.ClientSendMessageResponse
		error
	}
	const times = 16
	answers := make(chan told, times)
	for range times {
		go func() {
			r, err := ada.SendMessage(t.Context(), m)
			answers <- told{r, err}
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
	s.end(t, key)
	if got := ada.recalls("guide", 500); len(got) != 2 {
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
	s := newStage(t, nil)
	s.cast(t, coven.Name, "guide", 1)
	ada := arrive(t, s.service.Addresses().GRPC)
	key := s.key()
	data := make([]byte, 1<<20)
	ada.says("guide", "say "+key, &wire.FileAttachment{Filename: "a.bin", MimeType: "application/x-a", Data: data})
	got := s.await(t, key+" begun").(core.Request)
	want := []core.File{{Name: "a.bin", MediaType: "application/x-a", Data: data}}
	if d := cmp.Diff(want, got.Attachments); d != "" {
		t.Errorf("(-want +got):\n%.300s", d)
	}
	s.end(t, key)
	if got, want := ada.recalls("guide", 500)[0].GetText(), "say "+key+"\n\nAttached: a.bin (application/x-a, 1048576 bytes)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What cannot be is refused in the words and codes that clients know.
func TestWhatAClientCannotAskIsRefusedInItsOwnWords(t *testing.T) {
	s := newStage(t, nil)
	s.cast(t, coven.Name, "guide", 1)
	ada := arrive(t, s.service.Addresses().GRPC)
	send := func(conversation, content, key string) func() error {
		return func() error {
			_, err := ada.SendMessage(t.Context(), &wire.ClientSendMessageRequest{ConversationKey: conversation, Content: content, IdempotencyKey: key})
			return err
		}
	}
	events := func(r *wire.GetEventsRequest) func() error {
		return func() error {
			_, err := ada.GetEvents(t.Context(), r)
			return err
		}
	}
	stream := func(conversation string, since *string) func() error {
		return func() error {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			st, err := ada.StreamEvents(ctx, &wire.StreamEventsRequest{ConversationKey: conversation, SinceEventId: since})
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
	ids := s.service.Hub().ID()
	for name, tt := range map[string]struct {
		call func() error
		text string
	}{
		"no idempotency key":        {send("guide", "hello", ""), "idempotency_key required"},
		"a long idempotency key":    {send("guide", "hello", strings.Repeat("k", 101)), "idempotency_key too long"},
		"no conversation":           {send("", "hello", "k"), "conversation_key required"},
		"a long conversation":       {send(long, "hello", "k"), "conversation_key too long"},
		"no content":                {send("guide", "", "k"), "content required"},
		"events of nothing":         {events(&wire.GetEventsRequest{}), "conversation_key required"},
		"since no time":             {events(&wire.GetEventsRequest{ConversationKey: "guide", Since: &bad}), "invalid since timestamp"},
		"until no time":             {events(&wire.GetEventsRequest{ConversationKey: "guide", Until: &bad}), "invalid until timestamp"},
		"a cursor that is none":     {events(&wire.GetEventsRequest{ConversationKey: "guide", Cursor: &bad}), "invalid cursor"},
		"a stream of nothing":       {stream("", nil), "conversation_key required"},
		"a stream since nothing":    {stream("guide", &bad), "invalid since_event_id"},
		"a stream since another id": {stream("guide", &ids), "invalid since_event_id"},
		"no display name":           {register("", "x"), "display_name required"},
		"a blank display name":      {register(" ", "x"), "display_name cannot be only whitespace"},
		"a long display name":       {register(strings.Repeat("n", 101), "x"), "display_name exceeds 100 characters"},
		"an odd display name":       {register("a/b", "x"), "display_name contains invalid characters (allowed: alphanumeric, hyphens, underscores, periods, spaces)"},
		"no fingerprint":            {register("a", ""), "fingerprint required"},
		"a short fingerprint":       {register("a", "ab"), "fingerprint must be 64 hex characters (SHA256)"},
		"a fingerprint of letters":  {register("a", strings.Repeat("z", 64)), "fingerprint must be valid hex characters"},
		"a decision of nobody": {func() error {
			_, err := ada.ApproveTool(t.Context(), &wire.ApproveToolRequest{ToolId: "t"})
			return err
		}, "agent_id required"},
		"a decision on nothing": {func() error {
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
	// The agent is none the worse for it.
	key := s.key()
	ada.says("guide", "say "+key)
	s.end(t, key)
}

func TestAClientLearnsWhoItIsAndWhoIsHere(t *testing.T) {
	s := newStage(t, nil)
	s.cast(t, parallax.Dialect, "b", 1)
	s.cast(t, coven.Name, "a", 1)
	ada := arrive(t, s.service.Addresses().GRPC)
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
		t.Errorf("in another workspace: got %v and %v, want nobody", list, err)
	}
	finger := strings.Repeat("0a", 32)
	r, err := ada.RegisterAgent(t.Context(), &wire.RegisterAgentRequest{DisplayName: "a", Fingerprint: finger})
	if err != nil || r.GetStatus() != "approved" || r.GetPrincipalId() != "a" {
		t.Errorf("got %v and %v, want it approved as a", r, err)
	}
}

// An agent asks a question of who talks with it, and waits for what they choose.
func TestAnAgentAsksPeopleAQuestion(t *testing.T) {
	s := newStage(t, nil)
	asker := connectCovenAgentWith(t, s, "asker", "ui")
	defer asker.leave()
	ada := arrive(t, s.service.Addresses().GRPC)
	input := map[string]any{"question": "Which day?", "options": []any{map[string]any{"label": "Monday"}, map[string]any{"label": "Friday", "description": "the last"}}}
	if got := asker.call("ask_user", input).outcome(t); got.Code != "unsupported" || got.Words != "failed to send question: no connected clients for agent asker" {
		t.Errorf("while nobody listens: got %+v, want it said so", got)
	}
	hers := ada.listens("asker", "")
	call := asker.call("ask_user", input)
	heard := hers.hears(func(m *wire.ClientStreamEvent) bool { return m.GetUserQuestion() != nil })
	q := heard[len(heard)-1].GetUserQuestion()
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
	if got := call.outcome(t); got.End != "output" || !sameJSON(got.Data, []byte(`{"answered":true,"selected":["Friday"]}`)) {
		t.Errorf("got %+v, want what was chosen", got)
	}
	if got, _ := ada.AnswerQuestion(t.Context(), answer); got.GetSuccess() {
		t.Errorf("answered again: got %v, want it refused", got)
	}
	input["timeout_seconds"] = 1
	if got := asker.call("ask_user", input).outcome(t); !sameJSON(got.Data, []byte(`{"answered":false,"reason":"timeout"}`)) {
		t.Errorf("nobody answers: got %+v, want it said", got)
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
