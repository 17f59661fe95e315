package rest_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// listed is a task in a list, as clients read it.
type listed struct {
	ID             core.TaskID
	State, Content string
	Agent          core.AgentID
	Answer         *struct{}
}

// lists reads all pages of a list of tasks, and returns a line for each task.
func (g *testServer) lists(query string, headers ...string) (lines []string) {
	g.t.Helper()
	for before := ""; ; {
		var page struct {
			Tasks  []listed
			Before string
		}
		g.get("/v1/tasks?"+query+"&before="+before, headers...).into(http.StatusOK, &page)
		for _, task := range page.Tasks {
			lines = append(lines, fmt.Sprintf("%s %s %s", task.Content, task.State, task.Agent))
			if task.Answer != nil {
				g.t.Errorf("got %+v, want no answer in a list", task)
			}
		}
		if before = page.Before; before == "" {
			return lines
		}
	}
}

func TestTasksAreListed(t *testing.T) {
	g := start(t, hub.Options{Limits: hub.Limits{FinishedTasks: 1}}, rest.Options{})
	a, b := g.agent("a"), g.agent("b", func(c *core.Card) { c.MaxConcurrent = 1 })
	one := g.opened(`{"to":"a","content":"one","thread":"talk"}`)
	a.report(a.accept(), core.Text{Text: "yes"}, core.Done{})
	g.opened(`{"to":"a","content":"two"}`, "X-User: ann")
	a.report(a.accept(), core.Failed{Fault: core.NewFault(core.CodeInternal, "no")})
	g.opened(`{"to":"b","content":"three","thread":"talk"}`)
	running := b.accept()
	four := g.opened(`{"to":"b","content":"four"}`)
	all := []string{"four queued ", "three running b", "two failed a", "one done a"}
	for query, want := range map[string][]string{
		"": all, "limit=1": all, "limit=3": all, "state=&agent=&from=&thread=&limit=": all,
		"state=queued": all[:1], "state=running": all[1:2], "state=failed": all[2:3], "state=done": all[3:], "state=cancelled": nil,
		"agent=a": all[2:], "agent=b": all[:2], "agent=nobody": nil, "from=ann": all[2:3], "thread=talk": {all[1], all[3]},
		"cause=": all, "cause=" + string(one): nil, "thread=" + string(four): all[:1], "agent=a&state=done": all[3:],
	} {
		if d := cmp.Diff(want, g.lists(query)); d != "" {
			t.Errorf("?%s (-want +got):\n%s", query, d)
		}
	}
	if d := cmp.Diff(all[2:3], g.lists("", "X-User: ann")); d != "" {
		t.Errorf("ann's own (-want +got):\n%s", d)
	}
	for query, detail := range map[string]string{
		"state=over": "cancelled", "limit=0": "1 to 500", "limit=501": "1 to 500", "limit=x": "1 to 500", "before=yesterday": "before", "cause=me": "cause",
		"agent=" + url.QueryEscape("capability:x"): "agent",
	} {
		g.get("/v1/tasks?"+query).refused(http.StatusBadRequest, core.CodeInvalid, detail)
	}
	var task struct{ Content, Thread string }
	if g.get("/v1/tasks/"+string(one)).into(http.StatusOK, &task); task.Content != "one" || task.Thread != "talk" {
		t.Errorf("got %+v, want the request", task)
	}
	b.report(running, core.Done{})
	b.report(b.accept(), core.Done{})
}

func TestATaskShowsItsRequest(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	g.agent("a")
	id := g.opened(`{"to":"a","intent":"delegate","content":"sort","data":[3,1],"context":{"n":2},"domain":"lists","priority":"urgent","max_tokens":9,"report_back":true,"attachments":[{"name":"x","data":"aGk="}]}`)
	var got map[string]any
	g.get("/v1/tasks/"+string(id)).into(http.StatusOK, &got)
	want := map[string]any{
		"content": "sort", "data": []any{3.0, 1.0}, "context": map[string]any{"n": 2.0}, "domain": "lists", "priority": "urgent",
		"max_tokens": 9.0, "report_back": true, "attachments": []any{map[string]any{"name": "x", "data": "aGk="}}, "intent": "delegate",
	}
	for key, value := range want {
		if d := cmp.Diff(value, got[key]); d != "" {
			t.Errorf("%s (-want +got):\n%s", key, d)
		}
	}
}

func TestAgentsAreListedInPages(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	var all []core.AgentID
	for i := range 5 {
		id := fmt.Sprintf("agent-%d", i)
		g.agent(id)
		all = append(all, core.AgentID(id))
	}
	for _, limit := range []string{"", "1", "2", "5", "1000"} {
		var got []core.AgentID
		for after := ""; ; {
			var page struct {
				Agents []struct{ ID core.AgentID }
				After  string
			}
			g.get("/v1/agents?limit="+limit+"&after="+after).into(http.StatusOK, &page)
			for _, a := range page.Agents {
				got = append(got, a.ID)
			}
			if after = page.After; after == "" {
				break
			}
		}
		if d := cmp.Diff(all, got); d != "" {
			t.Errorf("in pages of %q (-want +got):\n%s", limit, d)
		}
	}
	for query, detail := range map[string]string{"limit=0": "1 to 1000", "limit=1001": "1 to 1000", "after=capability:x": "reserved"} {
		g.get("/v1/agents?"+query).refused(http.StatusBadRequest, core.CodeInvalid, detail)
	}
}

func TestTheTasksThatATaskHasCausedAreListedWithTheirEnds(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a, b := g.agent("a"), g.agent("b")
	parent := g.opened(`{"to":"a","content":"parent"}`)
	works := a.accept()
	if _, err := a.s.Open(core.Request{To: core.ToAgent("b"), Content: "child"}, hub.OpenOptions{}); err != nil {
		t.Fatal(err)
	}
	child := b.accept()
	query := "cause=" + string(parent)
	if d := cmp.Diff([]string{"child running b"}, g.lists(query)); d != "" {
		t.Errorf("while it runs (-want +got):\n%s", d)
	}
	b.report(child, core.Done{})
	g.ended(child.ID())
	var page struct {
		Tasks []struct {
			ID      core.TaskID
			EndedAt time.Time `json:"ended_at"`
		}
	}
	var one struct {
		EndedAt time.Time `json:"ended_at"`
	}
	g.get("/v1/tasks?"+query).into(http.StatusOK, &page)
	g.get("/v1/tasks/"+string(child.ID())).into(http.StatusOK, &one)
	if want := child.Last().At; len(page.Tasks) != 1 || !page.Tasks[0].EndedAt.Equal(want) || !one.EndedAt.Equal(want) {
		t.Errorf("got %+v in the list and %v alone, want the end %v", page.Tasks, one, want)
	}
	one.EndedAt = time.Time{}
	if g.get("/v1/tasks/"+string(parent)).into(http.StatusOK, &one); !one.EndedAt.IsZero() {
		t.Errorf("got the end %v of a task that runs, want none", one.EndedAt)
	}
	a.report(works, core.Done{})
}

func TestConversationsAreListedAndWhatTheySayIsFound(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	a.answer(2, core.Text{Text: "in the Cupboard"}, core.Done{})
	for _, body := range []string{`{"to":"a","content":"Where is the teapot?","thread":"tea"}`, `{"to":"a","content":"and the cups?","thread":"tea"}`} {
		g.ended(g.opened(body))
	}
	var page struct {
		Threads []struct {
			ID, Title, State string
			Agents           []string
		}
		Before *string
	}
	g.get("/v1/threads?limit=1&state=done&agent=a").into(http.StatusOK, &page)
	if got := fmt.Sprintf("%+v", page.Threads); got != "[{ID:tea Title:Where is the teapot? State:done Agents:[a]}]" || page.Before != nil {
		t.Errorf("got %s and %v, want the conversation and no more", got, page.Before)
	}
	if g.get("/v1/threads", "X-User: eve").into(http.StatusOK, &page); len(page.Threads) != 0 {
		t.Errorf("for somebody else: got %+v, want none", page.Threads)
	}
	var tasks struct {
		Tasks []struct{ Content, Found string }
	}
	g.get("/v1/tasks?text=cupBOARD&limit=1").into(http.StatusOK, &tasks)
	if got := fmt.Sprintf("%+v", tasks.Tasks); got != "[{Content:and the cups? Found:in the Cupboard}]" {
		t.Errorf("got %s, want the newest task with where it was found", got)
	}
	for query, detail := range map[string]string{
		"threads?state=over": "cancelled", "threads?limit=0": "1 to 500", "threads?before=yesterday": "before", "threads?agent=capability:x": "agent",
		"tasks?text=" + strings.Repeat("x", 513): "at most 512 bytes",
	} {
		g.get("/v1/"+query).refused(http.StatusBadRequest, core.CodeInvalid, detail)
	}
}
