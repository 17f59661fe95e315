package rest_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/usage"
	"github.com/dragoman-hub/dragoman/schemas"
)

func TestTheAgentsAreListed(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	var list struct{ Agents []hub.AgentStatus }
	g.get("/v1/agents").into(http.StatusOK, &list)
	if list.Agents == nil || len(list.Agents) != 0 {
		t.Errorf("got %v, want an empty list", list.Agents)
	}
	g.agent("b", func(c *core.Card) {
		c.Capabilities, c.Domains, c.Model = []string{"sing"}, []string{"music"}, "m"
		c.Tools, c.Channels, c.Metadata = []string{"t"}, []string{"c"}, map[string]json.RawMessage{"k": json.RawMessage(`{"x":[1]}`)}
	})
	g.agent("a")
	g.get("/v1/agents").into(http.StatusOK, &list)
	if len(list.Agents) != 2 || list.Agents[0].ID != "a" || list.Agents[1].ID != "b" {
		t.Fatalf("got %v, want a and b", list.Agents)
	}
	if b := list.Agents[1]; b.Model != "m" || !slices.Equal(b.Capabilities, []string{"sing"}) || b.Load.State != core.LoadIdle || b.Principal.ID != "b" {
		t.Errorf("got %+v, want the card of b", b)
	}
}

func TestAnAgentIsFoundByAnyValidID(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	for _, id := range []string{"plain", "team/one", "50%", "50%25", "mit Lücke", "a?b#c"} {
		g.agent(id)
		var s hub.AgentStatus
		g.get("/v1/agents/"+url.PathEscape(id)).into(http.StatusOK, &s)
		if string(s.ID) != id {
			t.Errorf("got %q, want %q", s.ID, id)
		}
	}
	g.get("/v1/agents/plian").refused(http.StatusNotFound, core.CodeUnknownAgent, "plian", "the nearest: plain")
}

func TestTheOverviewOfTheHub(t *testing.T) {
	g := start(t, hub.Options{ID: "h"}, rest.Options{Addresses: func(r *http.Request) rest.Addresses {
		host, _, _ := net.SplitHostPort(r.Host)
		return rest.Addresses{GRPC: host + ":1"}
	}})
	a := g.agent("a", func(c *core.Card) { c.MaxConcurrent = 1 })
	g.opened(`{"to":"a","content":"1"}`)
	last := g.opened(`{"to":"a","content":"2"}`)
	g.get("/v1/agents/none").refused(http.StatusNotFound, core.CodeUnknownAgent)
	var v struct {
		ID, Version string
		Addresses   map[string]string
		Agents      int
		Tasks       struct{ Running, Queued int }
		Counters    map[string]int64
		Limits      struct {
			Deadline    int64  `json:"deadline_ms"`
			BodyBytes   int    `json:"body_bytes"`
			QueueLength int    `json:"queue_length"`
			Disconnect  string `json:"disconnect"`
		}
	}
	g.get("/v1/hub").into(http.StatusOK, &v)
	if v.ID != "h" || v.Version != "1.2.3" || v.Agents != 1 || v.Tasks.Running != 1 || v.Tasks.Queued != 1 {
		t.Errorf("got %+v, want hub h with an agent, a running task and a queued task", v)
	}
	if d := cmp.Diff(map[string]string{"grpc": "127.0.0.1:1"}, v.Addresses); d != "" {
		t.Errorf("the addresses (-want +got):\n%s", d)
	}
	if v.Counters["rest.refused.unknown_agent"] != 1 || v.Limits.Deadline != 4*3600_000 || v.Limits.BodyBytes != 24<<20 || v.Limits.QueueLength != 64 || v.Limits.Disconnect != "single" {
		t.Errorf("got counters %v and limits %+v, want one refusal and the defaults", v.Counters, v.Limits)
	}
	a.answer(2, core.Done{})
	g.ended(last)
}

func TestUsageAddsUpTokens(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	for range 2 {
		g.opened(`{"to":"a","content":"x","thread":"th"}`)
		a.report(a.accept(), core.Usage{Input: 10, Output: 1}, core.Done{})
	}
	for by, key := range map[string]string{"": "a", "agent": "a", "thread": "th", "requester": operator} {
		var u struct {
			By     string
			Totals []struct {
				Key    string
				Tokens core.Usage
				Events int
			}
		}
		g.get("/v1/usage?by="+by).into(http.StatusOK, &u)
		if len(u.Totals) != 1 || u.Totals[0].Key != key || u.Totals[0].Tokens.Input != 20 || u.Totals[0].Events != 2 {
			t.Errorf("by %q: got %+v, want 20 tokens for %s", by, u, key)
		}
	}
	g.get("/v1/usage?by=moon").refused(http.StatusBadRequest, core.CodeInvalid, "agent, thread, requester, day or task")
}

func TestUsageIncludesTheStatusOfBudgets(t *testing.T) {
	limits := []usage.Budget{{By: usage.ByAgent, Key: "a", Tokens: 40, Per: usage.Daily}, {By: usage.ByThread, Key: "th", Tokens: 7, Per: usage.Ever}}
	g := start(t, hub.Options{Budgets: limits}, rest.Options{})
	a := g.agent("a")
	g.opened(`{"to":"a","content":"x"}`)
	a.report(a.accept(), core.Usage{Input: 10}, core.Done{})
	type budget struct {
		By, Key, Per          string
		Tokens, Used, Percent int64
		Resets                *time.Time
	}
	var u struct{ Budgets []budget }
	g.get("/v1/usage").into(http.StatusOK, &u)
	want := []budget{{By: "agent", Key: "a", Per: "day", Tokens: 40, Used: 10, Percent: 25}, {By: "thread", Key: "th", Per: "total", Tokens: 7}}
	if len(u.Budgets) != 2 || u.Budgets[0].Resets == nil {
		t.Fatalf("got %+v, want two, the first with the time when it resets", u.Budgets)
	}
	if u.Budgets[0].Resets = nil; !cmp.Equal(want, u.Budgets) {
		t.Errorf("got %+v, want %+v", u.Budgets, want)
	}
}

func TestAThreadListsItsTurns(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	var th struct {
		ID    string
		Turns []core.Turn
	}
	g.get("/v1/threads/a%2Fb").into(http.StatusOK, &th)
	if th.ID != "a/b" || th.Turns == nil || len(th.Turns) != 0 {
		t.Errorf("got %+v, want a/b without turns", th)
	}
	for _, q := range []string{"one?", "two?"} {
		g.opened(`{"to":"a","content":"` + q + `","thread":"a/b"}`)
		a.report(a.accept(), core.Text{Text: "yes, " + q}, core.Done{})
	}
	g.get("/v1/threads/a%2Fb").into(http.StatusOK, &th)
	var got []string
	for _, turn := range th.Turns {
		got = append(got, turn.Role.String()+" "+turn.Text)
	}
	if want := []string{"user one?", "assistant yes, one?", "user two?", "assistant yes, two?"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTheDocumentNeedsNoAuthentication(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	if a := g.get("/v1/openapi.json", "X-User: unauthenticated"); a.status != http.StatusOK || string(a.body) != string(schemas.OpenAPI) {
		t.Errorf("got status %d and %d bytes, want the document", a.status, len(a.body))
	}
}

func TestTheOverviewTellsWhatDialectsLostOfEachOther(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{
		Translations: core.Translations{rest.Name: {Dialect: rest.Name, ToRequester: core.Table{core.KindFile: {How: core.Refused}, core.KindText: {How: core.Native}}}},
		SeesAll:      func(p core.Principal) bool { return p.ID == "root" },
	})
	a := g.agent("a")
	id := g.opened(`{"to":"a","content":"hi"}`)
	task := a.accept()
	a.report(task, core.Text{Text: "x"}, core.File{Name: "f", Data: []byte("x")}, core.Done{})
	g.ended(id)
	var got struct{ Losses []hub.Loss }
	g.get("/v1/hub", "X-User: root").into(http.StatusOK, &got)
	want := []hub.Loss{{From: "test", To: rest.Name, Kind: "file", How: "refused", N: 1}}
	if d := cmp.Diff(want, got.Losses); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	g.get("/v1/hub", "X-User: bob").into(http.StatusOK, &got)
	if got.Losses == nil || len(got.Losses) != 0 {
		t.Errorf("bob got %v, want none", got.Losses)
	}
}
