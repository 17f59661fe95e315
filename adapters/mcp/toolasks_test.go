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
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// placeForm is the form in which the tool of askingPack asks.
var placeForm = question.Form{
	Name: "place", Message: "maps asks: Where?", Decline: "Decline to answer",
	Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string","default":"Oslo"}},"required":["city"]}`),
}

// askingPack offers the tool find, which asks its caller as often as there are forms and returns what it
// said, or why it could not be asked.
func (g *testServer) askingPack(forms ...question.Form) {
	g.t.Helper()
	pack := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "pack"}, Dialect: "test"})
	g.t.Cleanup(func() { pack.Close(nil) })
	if err := pack.Provide("maps", []tool.Definition{{Name: "find"}}); err != nil {
		g.t.Fatal(err)
	}
	find := func(ctx context.Context, execution string) {
		var said []question.Outcome
		for _, form := range forms {
			q := question.Question{Text: form.Message + "\nAnswer in words.", Options: []question.Option{{Label: form.Decline}}, Form: &form}
			o, err := pack.AskCaller(ctx, execution, q)
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
		withdraw := map[string]context.CancelFunc{}
		for {
			b, err := pack.Next(context.Background())
			switch {
			case err != nil:
				return
			case b.Execute != nil:
				ctx, cancel := context.WithCancel(context.Background())
				withdraw[b.Execute.ID] = cancel
				go find(ctx, b.Execute.ID)
			case b.Withdrawn != "":
				withdraw[b.Withdrawn]()
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
			if !named || len(first.Requests) != 1 || in.Method != "elicitation/create" || in.Params.Mode != "form" || in.Params.Message != placeForm.Message || string(in.Params.Schema) != string(placeForm.Schema) {
				t.Errorf("got %+v, want the form of the tool under its name", first.Requests)
			}
			g.ask(first.findAgain(`{"place":{"action":"accept","content":7}}`)).fails(http.StatusBadRequest, -32602, "place: content")
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
			if got := string(m.Params); !strings.Contains(got, `"message":"maps asks: Where?`) || !strings.Contains(got, want.schema) {
				t.Errorf("got %s, want the question with %s", got, want.schema)
			}
			g.post("", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":%s}}`, m.ID, want.content))
			s.outcome().contains(t, false, want.said)
		})
	}
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

func TestACallOfAToolWhoseClientDoesNotReturnIsWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testServer{t: t, hub: coretest.NewHub(t, hub.Options{})}
		server := mcp.New(g.hub, mcp.Options{Anonymous: core.Principal{ID: "anybody"}})
		defer server.Close()
		g.askingPack(placeForm)
		r := (<-g.direct(server, find(canAsk, ""))).required()
		<-time.After(time.Hour)
		if open := g.hub.Questions(core.Principal{ID: "boss", Operator: true}); len(open) > 0 {
			t.Errorf("got the questions %+v, want none for a client that does not return", open)
		}
		(<-g.direct(server, r.findAgain(`{}`))).fails(http.StatusBadRequest, -32602, "expired")
	})
}
