package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
)

// required is the result of a call that needs the user.
type required struct {
	Type     string `json:"resultType"`
	Requests map[string]struct {
		Method string
		Params struct {
			Mode, Message string
			Schema        json.RawMessage `json:"requestedSchema"`
		}
	} `json:"inputRequests"`
	State string `json:"requestState"`
}

// required reads the result of a call that needs the user.
func (a answer) required() (r required) {
	a.t.Helper()
	if err := json.Unmarshal(a.rpc(http.StatusOK).Result, &r); err != nil || r.Type != "input_required" || r.State == "" || len(r.Requests) == 0 {
		a.t.Fatalf("got %s, want input_required with requests and a state", a.body)
	}
	return r
}

// askBobModern returns a call of agent_ask; more are further members of params.
func askBobModern(capabilities, more string) string {
	return modern("tools/call", capabilities, `"name":"agent_ask","arguments":`+askBob+more)
}

// again returns the repetition of the call with an answer of the user.
func (r required) again(responses string) string {
	return askBobModern(canAsk, `,"requestState":"`+r.State+`","inputResponses":`+responses)
}

// approval is what an agent reports to have a tool approved.
var approval = core.ApprovalRequested{ID: "t1", Name: "rm", Input: `{"path":"build","evil":"` + "\u202e" + `"}`}

// decision waits until the agent is told the decision on a tool call.
func (a *testAgent) decision() core.ApprovalDecided {
	a.t.Helper()
	for {
		b, err := a.Next(a.t.Context())
		if err != nil {
			a.t.Fatalf("waiting for a decision: got %v, want no error", err)
		}
		for _, e := range b.Events {
			if d, ok := e.Body.(core.ApprovalDecided); ok {
				return d
			}
		}
	}
}

// needsApproval starts a call whose agent wants an approval, and returns the answer.
func (g *testServer) needsApproval(bob *testAgent) (*task.Task, required) {
	g.t.Helper()
	done := g.askLater(g.t.Context(), askBobModern(canAsk, ""))
	task := bob.next(core.KindAssigned)
	bob.report(task, core.ToolCall{ID: "t1", Name: "rm", Input: approval.Input}, approval)
	return task, (<-done).required()
}

func TestAModernClientIsAskedForAnApprovalInTheResult(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	bob := g.agent("bob")
	for response, want := range map[string]core.ApprovalDecided{
		`{"action":"accept","content":{"allow":true}}`:             {Approved: true},
		`{"action":"accept","content":{"allow":true,"all":true}}`:  {Approved: true, All: true},
		`{"action":"accept","content":{"allow":false,"all":true}}`: {},
		`{"action":"decline"}`:                                     {Reason: "declined"},
		`{"action":"cancel"}`:                                      {Reason: "dismissed"},
	} {
		task, r := g.needsApproval(bob)
		in, ok := r.Requests["t1"]
		if !ok || in.Method != "elicitation/create" || in.Params.Mode != "form" || !strings.Contains(in.Params.Message, `bob asks to run rm:`+"\n"+`{"path":"build","evil":"\u202e"}`) {
			t.Errorf("got %+v, want a form that shows the whole input under the id of the approval", r.Requests)
		}
		done := g.askLater(t.Context(), r.again(`{"t1":`+response+`,"t2":{"action":"accept"}}`))
		got := bob.decision()
		if got.Approved != want.Approved || got.All != want.All || got.Reason != want.Reason || got.By != "anybody" {
			t.Errorf("%s: got %+v, want %+v", response, got, want)
		}
		bob.report(task, core.Done{Text: "42"})
		a := <-done
		a.outcome().contains(t, false, `"text":"42"`)
		if kind := string(a.result()["resultType"]); kind != `"complete"` {
			t.Errorf("got the type %s, want complete", kind)
		}
	}
}

func TestAnAnswerThatDoesNotFitIsRefusedAndTheCallCanBeRepeated(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	bob := g.agent("bob")
	task, r := g.needsApproval(bob)
	for _, response := range []string{`7`, `{"action":"agree"}`, `{"action":"accept"}`, `{"action":"accept","content":{"allow":"yes"}}`, `{"action":"accept","content":{}}`} {
		g.ask(r.again(`{"t1":`+response+`}`)).fails(http.StatusBadRequest, -32602, "t1")
	}
	// Without an answer the client is asked again.
	if again := g.ask(r.again(`{}`)).required(); again.Requests["t1"].Method == "" {
		t.Errorf("got %+v, want the same request again", again)
	}
	done := g.askLater(t.Context(), r.again(`{"t1":{"action":"accept","content":{"allow":true}}}`))
	if d := bob.decision(); !d.Approved {
		t.Errorf("got %+v, want an approval", d)
	}
	bob.report(task, core.Done{Text: "42"})
	(<-done).outcome().contains(t, false, "42")
}

func TestTheSameAnswerTwiceIsIgnoredTheSecondTime(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	bob := g.agent("bob")
	task, r := g.needsApproval(bob)
	yes, no := r.again(`{"t1":{"action":"accept","content":{"allow":true}}}`), r.again(`{"t1":{"action":"decline"}}`)
	first := g.askLater(t.Context(), yes)
	if d := bob.decision(); !d.Approved {
		t.Errorf("got %+v, want an approval", d)
	}
	second := g.askLater(t.Context(), no)
	bob.report(task, core.Done{Text: "42"})
	(<-first).outcome().contains(t, false, "42")
	(<-second).outcome().contains(t, false, "42")
	g.ask(no).outcome().contains(t, false, "42") // also after the end
	decided := 0
	for _, e := range task.Events() {
		if e.Body.Kind() == core.KindApprovalDecided {
			decided++
		}
	}
	if decided != 1 {
		t.Errorf("got %d decisions, want one", decided)
	}
}

func TestAnAlteredStateIsRefused(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	bob, ann := g.agent("bob"), g.agent("ann")
	token, revoke := g.server.Issue(ann.Session)
	defer revoke()
	task, r := g.needsApproval(bob)
	const yes = `{"t1":{"action":"accept","content":{"allow":true}}}`
	altered := r
	altered.State = strings.Replace(r.State, r.State[:1], string(r.State[0]+1), 1)
	g.ask(altered.again(yes)).fails(http.StatusBadRequest, -32602, "requestState")
	for _, state := range []string{".", "x", r.State + "A", strings.Split(r.State, ".")[0]} {
		altered.State = state
		g.ask(altered.again(yes)).fails(http.StatusBadRequest, -32602, "requestState")
	}
	g.ask(strings.Replace(r.again(yes), "how much?", "how many?", 1)).fails(http.StatusBadRequest, -32602, "other arguments")
	g.post("/"+token, r.again(yes), headersOf(r.again(yes))...).fails(http.StatusBadRequest, -32602, "another principal")
	// The order of the members of the arguments is not part of the call.
	done := g.askLater(t.Context(), strings.Replace(r.again(yes), askBob, `{ "content":"how much?","to":"bob"}`, 1))
	if d := bob.decision(); !d.Approved {
		t.Errorf("got %+v, want an approval", d)
	}
	bob.report(task, core.Done{})
	(<-done).outcome().contains(t, false, "task_id")
}

func TestACallWhoseClientDoesNotReturnIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testServer{t: t, hub: coretest.NewHub(t, hub.Options{})}
		server := mcp.New(g.hub, mcp.Options{Anonymous: core.Principal{ID: "anybody"}})
		defer server.Close()
		bob := g.agent("bob")
		done := g.direct(server, askBobModern(canAsk, ""))
		task := bob.next(core.KindAssigned)
		bob.report(task, approval)
		r := (<-done).required()
		bob.next(core.KindApprovalDecided) // the hub denies it after a while
		bob.next(core.KindCancelRequested)
		bob.report(task, core.Cancelled{})
		<-time.After(time.Hour)
		(<-g.direct(server, r.again(`{}`))).fails(http.StatusBadRequest, -32602, "expired")
	})
}

func TestAModernClientThatCannotAskWaitsForThePeopleOfTheHub(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{KeepAlive: 10 * time.Millisecond})
	bob := g.agent("bob")
	for _, capabilities := range []string{canNothing, `{"elicitation":{"url":{}}}`} {
		body := strings.Replace(askBobModern(capabilities, ""), `"_meta":{`, `"_meta":{"progressToken":"p",`, 1)
		s := g.open(t.Context(), body, headersOf(body)...)
		task := bob.next(core.KindAssigned)
		bob.report(task, approval)
		for !strings.Contains(string(s.until("notifications/progress").Params), "waits for the approval of rm") {
		}
		if err := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "boss", Operator: true}}).Decide(hub.NoWait, task.ID(), core.ApprovalDecided{ID: "t1", Approved: true}); err != nil {
			t.Fatal(err)
		}
		bob.decision()
		bob.report(task, core.Done{Text: "42"})
		s.outcome().contains(t, false, "42")
	}
}

// legacySession returns the session header of a client that can ask its user.
func (g *testServer) legacySession() string {
	g.t.Helper()
	a := g.post("", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"x","version":"1"}}}`)
	return "Mcp-Session-Id: " + a.header.Get("Mcp-Session-Id")
}

func TestALegacyClientIsAskedOnTheStreamOfItsCall(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	bob := g.agent("bob")
	session := g.legacySession()
	for response, want := range map[string]bool{
		`"result":{"action":"accept","content":{"allow":true}}`: true, `"result":{"action":"decline"}`: false, `"result":{"action":"cancel"}`: false,
	} {
		task, s := g.askLegacy(bob, session)
		m := s.until("elicitation/create")
		if !strings.Contains(string(m.Params), "asks to run rm") || len(m.ID) == 0 {
			t.Errorf("got %s %s, want a request that shows the tool", m.ID, m.Params)
		}
		reply := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, response)
		for range 2 { // the second one is ignored
			if a := g.post("", reply, session); a.status != http.StatusAccepted {
				t.Errorf("the answer: got %d, want 202", a.status)
			}
		}
		if d := bob.decision(); d.Approved != want {
			t.Errorf("%s: got %+v, want approved %t", response, d, want)
		}
		bob.report(task, core.Done{Text: "42"})
		s.outcome().contains(t, false, "42")
	}
}

// askLegacy starts a call of a legacy client whose agent wants an approval.
func (g *testServer) askLegacy(bob *testAgent, session string) (*task.Task, *eventStream) {
	g.t.Helper()
	opened := make(chan *eventStream, 1)
	go func() {
		opened <- g.open(g.t.Context(), toolCall("7", "agent_ask", askBob), session, "Mcp-Protocol-Version: 2025-11-25")
	}()
	task := bob.next(core.KindAssigned)
	bob.report(task, approval)
	return task, <-opened
}

func TestAnApprovalDecidedElsewhereIsWithdrawnFromTheClient(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	bob := g.agent("bob")
	task, s := g.askLegacy(bob, g.legacySession())
	m := s.until("elicitation/create")
	boss := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "boss", Operator: true}})
	defer boss.Close(nil)
	if err := boss.Decide(hub.NoWait, task.ID(), core.ApprovalDecided{ID: "t1", Approved: true}); err != nil {
		t.Fatal(err)
	}
	if got := string(s.until("notifications/cancelled").Params); !strings.Contains(got, string(m.ID)) {
		t.Errorf("got %s, want the withdrawal of %s", got, m.ID)
	}
	g.post("", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"decline"}}`, m.ID))
	if d := bob.decision(); !d.Approved || d.By != "boss" {
		t.Errorf("got %+v, want the decision of boss", d)
	}
	bob.report(task, core.Done{})
	s.outcome().contains(t, false, "task_id")
}

func TestAQuestionIsPutToTheUserOfTheClient(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	bob := g.agent("bob", "ui")
	for _, tt := range []struct{ input, field, response, want string }{
		{`{"question":"Which?"}`, `"answer"`, `{"action":"accept","content":{"answer":"blue"}}`, `"custom_text":"blue"`},
		{`{"question":"Which?","options":[{"label":"red"},{"label":"blue"}]}`, `"enum":["red","blue"]`, `{"action":"accept","content":{"choice":"blue"}}`, `"selected":["blue"]`},
		{`{"question":"Which?","options":[{"label":"red"},{"label":"blue"}],"multi_select":true}`, `"type":"array"`, `{"action":"accept","content":{"choice":["red","blue"]}}`, `"selected":["red","blue"]`},
		{`{"question":"Which?"}`, `"answer"`, `{"action":"decline"}`, `"reason":"dismissed"`},
		{`{"question":"Which?"}`, `"answer"`, `{"action":"cancel"}`, `"reason":"dismissed"`},
	} {
		done := g.askLater(t.Context(), askBobModern(canAsk, ""))
		task := bob.next(core.KindAssigned)
		bob.CallTool("q", "ask_user", json.RawMessage(tt.input))
		r := (<-done).required()
		var key string
		for k, in := range r.Requests {
			if key = k; !strings.Contains(in.Params.Message, "bob asks: Which?") || !strings.Contains(string(in.Params.Schema), tt.field) {
				t.Errorf("%s: got %+v, want a form with %s", tt.input, in.Params, tt.field)
			}
		}
		done = g.askLater(t.Context(), r.again(`{"`+key+`":`+tt.response+`}`))
		if out := bob.toolOutput(); !strings.Contains(out, tt.want) {
			t.Errorf("%s: got %s, want %s", tt.input, out, tt.want)
		}
		bob.report(task, core.Done{Text: "42"})
		(<-done).outcome().contains(t, false, "42")
	}
}

// Nothing that a client shows of the form says that one of its two fields has to be filled in.
func TestAUserWhoseAnswerDoesNotFitIsAskedAgainOnTheStream(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	bob := g.agent("bob", "ui")
	session, opened := g.legacySession(), make(chan *eventStream, 1)
	go func() {
		opened <- g.open(t.Context(), toolCall("7", "agent_ask", askBob), session, "Mcp-Protocol-Version: 2025-11-25")
	}()
	task := bob.next(core.KindAssigned)
	bob.CallTool("q", "ask_user", json.RawMessage(`{"question":"Which?","options":[{"label":"red"},{"label":"blue"}]}`))
	s := <-opened
	for _, said := range []struct{ content, before string }{
		{`{}`, `"message":"bob asks: Which?"`},
		{`{"choice":"green"}`, `The last answer did not fit: at least one selection or custom_text is required`},
		{`{"choice":"blue"}`, `The last answer did not fit: `},
	} {
		m := s.until("elicitation/create")
		if got := string(m.Params); !strings.Contains(got, said.before) {
			t.Errorf("got %s, want %s in it", got, said.before)
		}
		g.post("", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":%s}}`, m.ID, said.content))
	}
	if got, want := bob.toolOutput(), `"selected":["blue"]`; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	bob.report(task, core.Done{Text: "42"})
	s.outcome().contains(t, false, "42")
}

// toolOutput waits for the result of a tool that the agent called.
func (a *testAgent) toolOutput() string {
	a.t.Helper()
	for {
		b, err := a.Next(a.t.Context())
		if err != nil {
			a.t.Fatalf("waiting for the result of a tool: got %v, want no error", err)
		}
		if b.Tool != nil {
			if b.Tool.Fault != nil {
				a.t.Fatalf("the tool: got %v, want an output", b.Tool.Fault)
			}
			return string(b.Tool.Output)
		}
	}
}

// The agent that was asked asks another, and that one asks people.
func TestAQuestionOfAnAgentFurtherDownReachesTheUser(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	bob, carl := g.agent("bob"), g.agent("carl", "ui")
	done := g.askLater(t.Context(), askBobModern(canAsk, ""))
	first := bob.next(core.KindAssigned)
	second, err := bob.Open(core.Request{To: core.ToAgent("carl"), Content: "and you?"}, hub.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	carl.next(core.KindAssigned)
	carl.CallTool("q", "ask_user", json.RawMessage(`{"question":"Which?"}`))
	r := (<-done).required()
	for key, in := range r.Requests {
		if !strings.Contains(in.Params.Message, "carl asks: Which?") {
			t.Errorf("got %+v, want the question of carl", in)
		}
		done = g.askLater(t.Context(), r.again(`{"`+key+`":{"action":"accept","content":{"answer":"blue"}}}`))
	}
	if out := carl.toolOutput(); !strings.Contains(out, "blue") {
		t.Errorf("got %s, want blue", out)
	}
	carl.report(second, core.Done{})
	bob.report(first, core.Done{Text: "42"})
	(<-done).outcome().contains(t, false, "42")
}

func TestAQuestionOfAnotherTaskOfTheAgentIsNotForTheUser(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	bob := g.agent("bob", "ui")
	boss := core.Principal{ID: "boss", Operator: true}
	other := g.hub.Connect(hub.Identity{Principal: boss})
	defer other.Close(nil)
	asked, err := other.Open(core.Request{To: core.ToAgent("bob"), Content: "plan"}, hub.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bob.next(core.KindAssigned)
	g.hub.ReadQuestions(boss, "") // so that questions wait for somebody
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, _ = bob.AskPeople(ctx, asked.ID(), question.Question{Text: "Whose?"}) }()
	for len(g.hub.Questions(boss)) == 0 {
		runtime.Gosched()
	}
	for _, ask := range []func() <-chan answer{
		func() <-chan answer { return g.askLater(t.Context(), askBobModern(canAsk, "")) },
		func() <-chan answer {
			return g.later(t.Context(), "", toolCall("7", "agent_ask", askBob), g.legacySession(), "Mcp-Protocol-Version: 2025-11-25", streams)
		},
	} {
		done := ask()
		bob.report(bob.next(core.KindAssigned), core.Done{Text: "42"})
		(<-done).outcome().contains(t, false, "42")
	}
	cancel()
	bob.report(asked, core.Done{})
}

func TestAQuestionWithoutAnyoneToAskIsRefused(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	bob := g.agent("bob", "ui")
	done := g.askLater(t.Context(), askBobModern(canNothing, ""))
	task := bob.next(core.KindAssigned)
	out, err := bob.Call(t.Context(), "ask_user", json.RawMessage(`{"question":"Which?"}`))
	if err != nil || out.Fault == nil || out.Fault.Code != core.CodeUnsupported {
		t.Errorf("got %+v and %v, want that nobody is there", out, err)
	}
	bob.report(task, core.Done{Text: "42"})
	(<-done).outcome().contains(t, false, "42")
}

func TestTooManyCallsThatWaitForTheirClientWaitForTheHub(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{MaxTasks: 1})
	bob := g.agent("bob")
	first, r := g.needsApproval(bob)
	done := g.askLater(t.Context(), askBobModern(canAsk, ""))
	second := bob.next(core.KindAssigned)
	bob.report(second, approval)
	bob.report(second, core.Done{Text: "43"}) // the call was not answered before
	(<-done).outcome().contains(t, false, "43")
	done = g.askLater(t.Context(), r.again(`{"t1":{"action":"decline"}}`))
	bob.decision()
	bob.report(first, core.Done{Text: "42"})
	(<-done).outcome().contains(t, false, "42")
}
