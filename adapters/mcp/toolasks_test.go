package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	hubpack "github.com/dragoman-hub/dragoman/core/pack"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// placeForm is the form in which the tool of askingPack asks.
var placeForm = question.Form{
	Name: "place", Message: "Where?", Decline: "Decline to answer",
	Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string","default":"Oslo"}},"required":["city"]}`),
}

// pack connects a pack with a tool. execute waits for a call of it.
func (g *testServer) pack(name string) (pack *hub.Session, execute func() *hubpack.Execution) {
	g.t.Helper()
	pack = g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "pack"}, Dialect: "test"})
	g.t.Cleanup(func() { pack.Close(nil) })
	if err := pack.Provide("maps", []tool.Definition{{Name: name, Timeout: 10 * time.Minute}}); err != nil {
		g.t.Fatal(err)
	}
	return pack, func() *hubpack.Execution {
		g.t.Helper()
		b, err := pack.Next(g.t.Context())
		if err != nil || b.Execute == nil {
			g.t.Fatalf("got %+v and %v, want a call", b, err)
		}
		return b.Execute
	}
}

// askingPack offers the tool find, which asks its caller for the forms, one after the other, and returns what it
// said, or why it could not be asked.
func (g *testServer) askingPack(forms ...question.Form) {
	g.t.Helper()
	pack, _ := g.pack("find")
	find := func(execution string) {
		said := []question.Outcome{}
		for _, form := range forms {
			q := question.Question{Text: form.Message + "\nAnswer in words.", Options: []core.Option{{Label: form.Decline}}, Form: &form}
			o, err := pack.AskCaller(g.t.Context(), execution, q)
			if err != nil {
				_ = pack.AnswerTool(execution, tool.Result{Fault: core.AsFault(err)}) // the call may be gone
				return
			}
			said = append(said, o)
		}
		out, _ := json.Marshal(said)
		_ = pack.AnswerTool(execution, tool.Result{Output: out}) // the call may be gone
	}
	go func() {
		for {
			b, err := pack.Next(context.Background())
			if err != nil {
				return
			}
			if b.Execute != nil {
				go find(b.Execute.ID)
			}
		}
	}()
}

// find returns a call of the tool; more are further members of params.
func find(capabilities, more string) string {
	return modern("tools/call", capabilities, `"name":"find"`+more)
}

// findAgain returns the repetition of the call with an answer of the user.
func (r required) findAgain(responses string) string {
	return find(canAsk, `,"requestState":"`+r.State+`","inputResponses":`+responses)
}

func TestAToolOfAPackAsksTheUserOfAModernClientAsItsServerDoes(t *testing.T) {
	t.Parallel()
	for response, want := range map[string]string{
		`{"action":"accept","content":{"city":"Rome","more":[1]}}`: `{"answered":true,"content":{"city":"Rome","more":[1]}}`,
		`{"action":"decline"}`: `{"answered":true,"selected":["Decline to answer"]}`,
		`{"action":"cancel"}`:  `{"answered":false,"reason":"dismissed"}`,
	} {
		t.Run(response, func(t *testing.T) {
			t.Parallel()
			g := start(t, mcp.Options{})
			second := placeForm
			second.Name = "other place"
			g.askingPack(placeForm, second)
			first := g.ask(find(canAsk, "")).required()
			in, named := first.Requests["place"]
			if !named || len(first.Requests) != 1 || in.Method != "elicitation/create" || in.Params.Mode != "form" || in.Params.Message != "find asks: Where?" || string(in.Params.Schema) != string(placeForm.Schema) {
				t.Errorf("got %+v, want the form of the tool under its name", first.Requests)
			}
			g.ask(first.findAgain(`{"place":{"action":"accept","content":7}}`)).fails(http.StatusBadRequest, -32602, "place: content")
			large := `{"city":"` + strings.Repeat("x", 64<<10) + `"}`
			g.ask(first.findAgain(`{"place":{"action":"accept","content":`+large+`}}`)).fails(http.StatusBadRequest, -32602, "place: content: it has")
			late := first.findAgain(`{"place":{"action":"cancel"}}`)
			first = g.ask(first.findAgain(`{"wrong":{"action":"cancel"}}`)).required() // is asked again
			first = g.ask(late).required()                                             // the answer to an earlier request does not count
			next := g.ask(first.findAgain(`{"place":` + response + `}`)).required()
			if _, named := next.Requests["other place"]; !named || len(next.Requests) != 1 || next.State == first.State {
				t.Errorf("got %+v, want only the second question, with a state of its own", next)
			}
			g.ask(next.findAgain(`{"other place":`+response+`}`)).outcome().contains(t, false, "["+want+","+want+"]")
			g.ask(next.findAgain(`{}`)).fails(http.StatusBadRequest, -32602, "no longer known")
		})
	}
}

func TestAToolOfAPackAsksTheUserOfALegacyClientOnTheStreamOfItsCall(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]struct{ schema, content, said string }{
		"2025-11-25": {string(placeForm.Schema), `{"city":"Rome"}`, `{"answered":true,"content":{"city":"Rome"}}`},
		"2025-06-18": {`"answer"`, `{"answer":"Rome"}`, `{"answered":true,"custom_text":"Rome"}`}, // its forms have less
	} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			g := start(t, mcp.Options{})
			g.askingPack(placeForm)
			s := g.open(t.Context(), toolCall("7", "find", `{}`), g.legacySession(), "Mcp-Protocol-Version: "+version)
			m := s.until("elicitation/create")
			if got := string(m.Params); !strings.Contains(got, `"message":"find asks: Where?`) || !strings.Contains(got, want.schema) {
				t.Errorf("got %s, want the question with %s", got, want.schema)
			}
			g.post("", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":%s}}`, m.ID, want.content))
			s.outcome().contains(t, false, want.said)
		})
	}
}

func TestTwoQuestionsOfOneNameAreAskedAndAnsweredEach(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	pack, execute := g.pack("find")
	session, opened := g.legacySession(), make(chan *eventStream, 1)
	go func() {
		opened <- g.open(t.Context(), toolCall("7", "find", `{}`), session, "Mcp-Protocol-Version: 2025-11-25")
	}()
	e := execute()
	said := make(chan string, 2)
	for range 2 {
		go func() {
			o, err := pack.AskCaller(t.Context(), e.ID, question.Question{Text: "Where?", Form: &placeForm, Options: []core.Option{{Label: placeForm.Decline}}})
			said <- fmt.Sprint(string(o.Content), err)
		}()
	}
	s := <-opened
	first, second := s.until("elicitation/create"), s.until("elicitation/create")
	for _, m := range []streamMessage{first, second} {
		g.post("", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"city":"Rome"}}}`, m.ID))
		if got, want := <-said, `{"city":"Rome"}<nil>`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if err := pack.AnswerTool(e.ID, tool.Result{Output: json.RawMessage(`"there"`)}); err != nil {
		t.Fatal(err)
	}
	s.outcome().contains(t, false, "there")
}

func TestAnAnswerThatDoesNotFitAndAnErrorEndTheQuestionOfATool(t *testing.T) {
	t.Parallel()
	for response, want := range map[string]struct {
		asked int
		said  string
	}{
		`"error":{"code":-32603,"message":"no form"}`:          {1, `{"answered":false,"reason":"dismissed"}`},
		`"result":{"action":"accept","content":[1]}`:           {3, `{"answered":false,"reason":"dismissed"}`},
		`"result":{"action":"maybe"}`:                          {3, `{"answered":false,"reason":"dismissed"}`},
		`"result":{"action":"accept"}`:                         {1, `{"answered":true,"content":{}}`},
		`"result":{"action":"accept","content":null}`:          {1, `{"answered":true,"content":{}}`},
		`"result":{"action":"decline","content":{"city":"x"}}`: {1, `{"answered":true,"selected":["Decline to answer"]}`},
	} {
		t.Run(response, func(t *testing.T) {
			t.Parallel()
			g := start(t, mcp.Options{})
			g.askingPack(placeForm)
			s := g.open(t.Context(), toolCall("7", "find", `{}`), g.legacySession(), "Mcp-Protocol-Version: 2025-11-25")
			for n := range want.asked {
				m := s.until("elicitation/create")
				if again := strings.Contains(string(m.Params), "The last answer did not fit: "); again != (n > 0) {
					t.Errorf("request %d: got %s, want why it is asked again: %t", n+1, m.Params, n > 0)
				}
				g.post("", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, response))
			}
			s.outcome().contains(t, false, want.said)
		})
	}
}

func TestARepeatedAnswerWhileTheToolRunsDoesNotSayThatItIsUnknown(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	pack, execute := g.pack("find")
	done := g.askLater(t.Context(), find(canAsk, ""))
	e := execute()
	said := make(chan question.Outcome, 1)
	go func() {
		o, err := pack.AskCaller(t.Context(), e.ID, question.Question{Text: "Where?", Form: &placeForm, Options: []core.Option{{Label: placeForm.Decline}}})
		if err != nil {
			t.Error(err)
		}
		said <- o
	}()
	r := (<-done).required()
	const answer = `{"place":{"action":"accept","content":{"city":"Rome"}}}`
	done = g.askLater(t.Context(), r.findAgain(answer))
	<-said
	g.ask(r.findAgain(answer)).fails(http.StatusBadRequest, -32602, "another request continues the call")
	if err := pack.AnswerTool(e.ID, tool.Result{Output: json.RawMessage(`"there"`)}); err != nil {
		t.Fatal(err)
	}
	(<-done).outcome().contains(t, false, "there")
}

func TestAQuestionOfAToolThatIsAnsweredElsewhereIsWithdrawnFromTheClient(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	g.askingPack(placeForm)
	s := g.open(t.Context(), toolCall("7", "find", `{}`), g.legacySession(), "Mcp-Protocol-Version: 2025-11-25")
	m := s.until("elicitation/create")
	boss := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "boss", Operator: true}})
	defer boss.Close(nil)
	open := g.hub.Questions(core.Principal{ID: "boss", Operator: true})
	if len(open) != 1 || open[0].Form == nil {
		t.Fatalf("got %+v, want the question with its form", open)
	}
	if _, err := boss.AnswerQuestion(t.Context(), core.Reply{Question: open[0].ID, Content: json.RawMessage(`{"city":"Bern"}`)}); err != nil {
		t.Fatal(err)
	}
	if got := string(s.until("notifications/cancelled").Params); !strings.Contains(got, string(m.ID)) {
		t.Errorf("got %s, want the withdrawal of %s", got, m.ID)
	}
	s.outcome().contains(t, false, "Bern")
}

func TestAToolOfAPackThatHasNobodyToAskIsToldSo(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	g.askingPack(placeForm)
	g.ask(find(canNothing, "")).outcome().contains(t, true, "works on no task")
	g.post("", toolCall("1", "find", `{}`), g.legacySession(), "Mcp-Protocol-Version: 2025-11-25", "Accept: application/json").outcome().contains(t, true, "works on no task")
}

// inBubble returns a hub and an MCP server without a socket, for a test with fake time.
func inBubble(t *testing.T) (*testServer, *mcp.Server) {
	g := &testServer{t: t, hub: coretest.NewHub(t, hub.Options{})}
	server := mcp.New(g.hub, mcp.Options{Anonymous: core.Principal{ID: "anybody"}})
	t.Cleanup(server.Close)
	return g, server
}

func TestACallOfAToolWhoseClientDoesNotReturnIsWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, server := inBubble(t)
		pack, execute := g.pack("find")
		done := g.direct(server, find(canAsk, ""))
		e := execute()
		said := make(chan string, 1)
		ask := func(until time.Duration) {
			o, err := pack.AskCaller(t.Context(), e.ID, question.Question{Text: "Where?", Form: &placeForm, Options: []core.Option{{Label: placeForm.Decline}}, Until: time.Now().Add(until)})
			said <- o.Reason + fmt.Sprint(err)
		}
		go ask(5 * time.Second)
		r := (<-done).required()
		if got := <-said; got != "timeout<nil>" {
			t.Errorf("got %s, want the question timed out", got)
		}
		began := time.Now()
		if b, err := pack.Next(t.Context()); err != nil || b.Withdrawn != e.ID {
			t.Errorf("got %+v and %v, want the call withdrawn", b, err)
		}
		if got := time.Since(began); got < 50*time.Second || got > 70*time.Second {
			t.Errorf("the client had %s to return, want a minute", got)
		}
		(<-g.direct(server, r.findAgain(`{}`))).fails(http.StatusBadRequest, -32602, "expired")
	})
}

func TestAnAnswerOfAToolThatCameMeanwhileIsThereWhenTheClientReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, server := inBubble(t)
		pack, execute := g.pack("find")
		done := g.direct(server, find(canAsk, ""))
		e := execute()
		go func() {
			_, _ = pack.AskCaller(t.Context(), e.ID, question.Question{Text: "Where?", Form: &placeForm, Options: []core.Option{{Label: placeForm.Decline}}, Until: time.Now().Add(time.Second)})
			_ = pack.AnswerTool(e.ID, tool.Result{Output: json.RawMessage(`"nowhere"`)})
		}()
		r := (<-done).required()
		<-time.After(5 * time.Second)
		(<-g.direct(server, r.findAgain(`{"place":{"action":"cancel"}}`))).outcome().contains(t, false, "nowhere")
	})
}
