package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// asking is an agent's question through MCP.
const asking = `{"to":"bob","content":"how much?"}`

// later sends a message and hands the answer over once it has come.
func (g *stage) later(ctx context.Context, below, body string, headers ...string) <-chan answer {
	done := make(chan answer, 1)
	go func() {
		defer close(done)
		resp, err := g.send(ctx, http.MethodPost, below, body, headers...)
		if err != nil {
			return
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		done <- answer{g.t, resp.StatusCode, resp.Header, b}
	}()
	return done
}

func TestAnAgentAsksAnotherInItsOwnName(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	ann, bob := g.actor("ann"), g.actor("bob")
	token, revoke := g.door.Issue(ann.Session)
	defer revoke()
	for _, how := range []struct{ below, header string }{
		{"/" + token, ""}, {"/" + token + "/", ""}, {fmt.Sprintf("/%%%x%s", token[0], token[1:]), ""},
		{"", "Authorization: Bearer " + token}, {"", "Authorization: bearer " + token}, {"/" + token, "Authorization: Bearer " + token},
	} {
		var headers []string
		if how.header != "" {
			headers = append(headers, how.header)
		}
		done := g.later(t.Context(), how.below, calling("1", "agent_ask", asking), headers...)
		task := bob.next(core.KindAssigned)
		if task.From().ID != "ann" || task.Request().Content != "how much?" {
			t.Errorf("got %q from %+v, want how much? from ann", task.Request().Content, task.From())
		}
		bob.say(task, core.Text{Text: "forty"}, core.Text{Text: "-two"}, core.Done{Data: json.RawMessage(`{"n":42}`)})
		o := (<-done).outcome()
		o.says(t, false, `"text":"forty-two","data":{"n":42}`)
		o.says(t, false, string(task.ID()))
	}
}

func TestWhatAnAgentSaidBeforeItFailedIsTold(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	bob := g.actor("bob")
	done := g.later(t.Context(), "", calling("1", "agent_ask", asking))
	task := bob.next(core.KindAssigned)
	if task.From().ID != "anybody" {
		t.Errorf("got %+v, want anybody", task.From())
	}
	bob.say(task, core.Text{Text: "half an answer"}, core.Failed{Fault: core.NewFault(core.CodeOverloaded, "too much at once")})
	o := (<-done).outcome()
	o.says(t, true, "overloaded: too much at once")
	o.says(t, true, "half an answer")
	if len(o.Content) != 2 {
		t.Errorf("got %+v, want the fault and what was said apart", o)
	}
}

func TestALoopThroughMCPIsRefusedAsOneThroughTheAgent(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	ann, bob := g.actor("ann"), g.actor("bob")
	token, revoke := g.door.Issue(bob.Session)
	defer revoke()
	asked, err := ann.Open(core.Request{To: core.ToAgent("bob"), Content: "do"}, hub.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bob.next(core.KindAssigned)
	g.post("/"+token, calling("1", "agent_ask", `{"to":"ann","content":"you do"}`)).outcome().says(t, true, "loop: ")
	g.post("/"+token, calling("1", "agent_ask", `{"to":"bob","content":"I do"}`)).outcome().says(t, true, "loop: ")
	// What it asks of others counts as because of what it works on.
	g.actor("carl")
	g.post("/"+token, calling("1", "agent_delegate", `{"to":"carl","content":"you do"}`)).outcome().says(t, false, `"accepted":true`)
	bob.say(asked, core.Done{})
}

func TestATokenDiesWithItsConnection(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	ann, bob := g.actor("ann"), g.actor("bob")
	token, revoke := g.door.Issue(ann.Session)
	done := g.later(t.Context(), "/"+token, calling("1", "agent_ask", asking))
	task := bob.next(core.KindAssigned)
	revoke()
	revoke() // no harm
	(<-done).outcome().says(t, true, "has ended")
	if got := bob.next(core.KindCancelRequested); got != task {
		t.Errorf("got a cancel of %s, want one of %s", got.ID(), task.ID())
	}
	bob.say(task, core.Cancelled{})
	for _, a := range []answer{
		g.post("/"+token, calling("7", "agents_list", `{}`)),
		g.post("", calling("7", "agents_list", `{}`), "Authorization: Bearer "+token),
		g.post("/nonsense", calling("7", "agents_list", `{}`)),
	} {
		a.fails(http.StatusBadRequest, -32600, "connect again")
		if r := a.rpc(http.StatusBadRequest); string(r.ID) != "7" || a.header.Get("WWW-Authenticate") != "" {
			t.Errorf("got id %s and WWW-Authenticate %q, want 7 and nothing", r.ID, a.header.Get("WWW-Authenticate"))
		}
	}
}

func TestATokenThatIsShownInAnOddWayIsRefused(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	token, revoke := g.door.Issue(g.actor("ann").Session)
	defer revoke()
	g.post("/"+token, hello, "Authorization: Bearer other").fails(http.StatusBadRequest, -32600, "differ")
	g.post("", hello, "Authorization: Basic "+token).fails(http.StatusBadRequest, -32600, "Bearer")
	g.post("", hello, "Authorization: Bearer").fails(http.StatusBadRequest, -32600, "Bearer")
	g.post("/"+token+"/more", hello).fails(http.StatusBadRequest, -32600, "unknown")
}

func TestWithoutAnAnonymousPrincipalATokenIsNeeded(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	closed := mcp.New(g.hub, mcp.Options{})
	defer closed.Close()
	g.serve(closed)
	g.post("", hello).fails(http.StatusUnauthorized, -32600, "mcp_token")
}

func TestWhoHangsUpCancelsTheCall(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	bob := g.actor("bob")
	ctx, hangUp := context.WithCancel(t.Context())
	done := g.later(ctx, "", calling("1", "agent_ask", asking))
	task := bob.next(core.KindAssigned)
	hangUp()
	<-done
	if got := bob.next(core.KindCancelRequested); got != task {
		t.Errorf("got a cancel of %s, want one of %s", got.ID(), task.ID())
	}
	bob.say(task, core.Cancelled{})
}

func TestACallIsCancelledInTheSessionOfItsClientOnly(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	bob := g.actor("bob")
	mine, other := g.post("", hello).header.Get("Mcp-Session-Id"), g.post("", hello).header.Get("Mcp-Session-Id")
	if mine == "" || mine == other {
		t.Fatalf("got sessions %q and %q, want two", mine, other)
	}
	done := g.later(t.Context(), "", calling("4", "agent_ask", asking), "Mcp-Session-Id: "+mine)
	task := bob.next(core.KindAssigned)
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4,"reason":"changed my mind"}}`
	g.post("", cancel)
	g.post("", cancel, "Mcp-Session-Id: "+other)
	g.post("", strings.Replace(cancel, "4", "5", 1), "Mcp-Session-Id: "+mine)
	bob.say(task, core.Text{Text: "still here"})
	g.post("", cancel, "Mcp-Session-Id: "+mine)
	(<-done).outcome().says(t, true, "changed my mind")
	bob.next(core.KindCancelRequested)
	bob.say(task, core.Cancelled{})
}

func TestTooManyCallsAreToldToWait(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{MaxCalls: 2})
	ann, bob := g.actor("ann"), g.actor("bob")
	token, revoke := g.door.Issue(ann.Session)
	defer revoke()
	var waiting []<-chan answer
	var tasks []*task.Task
	for range 2 {
		waiting = append(waiting, g.later(t.Context(), "/"+token, calling("1", "agent_ask", asking)))
		tasks = append(tasks, bob.next(core.KindAssigned))
	}
	g.post("/"+token, calling("1", "agents_list", `{}`)).outcome().says(t, true, "overloaded: 2 tools are running")
	g.post("", calling("1", "agents_list", `{}`)).outcome().says(t, false, "agents") // another holder
	for i, task := range tasks {
		bob.say(task, core.Done{})
		(<-waiting[i]).outcome().says(t, false, "task_id")
	}
	g.post("/"+token, calling("1", "agents_list", `{}`)).outcome().says(t, false, "agents")
}

func TestACallThatTakesTooLongIsStopped(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{CallTimeout: 50 * time.Millisecond})
	bob := g.actor("bob")
	g.post("", calling("1", "agent_ask", asking)).outcome().says(t, true, "timeout: agent_ask took longer than 50ms")
	task := bob.next(core.KindCancelRequested)
	bob.say(task, core.Cancelled{})
}

func TestALongAnswerShowsThatItLives(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{Patience: time.Millisecond, KeepAlive: time.Millisecond})
	bob := g.actor("bob")
	resp, err := g.send(t.Context(), http.MethodPost, "", calling(`"x"`, "agent_ask", asking), "Accept: application/json, text/event-stream")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("got %q, want a stream", got)
	}
	lines := bufio.NewScanner(resp.Body)
	for range 4 {
		if lines.Scan(); lines.Text() != ": alive" && lines.Text() != "" {
			t.Errorf("got %q, want signs of life", lines.Text())
		}
	}
	bob.say(bob.next(core.KindAssigned), core.Text{Text: "at\nlast"}, core.Done{})
	var data []string
	for lines.Scan() {
		if d, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			data = append(data, d)
		}
	}
	if err := lines.Err(); err != nil || len(data) != 1 {
		t.Fatalf("got %q and %v, want one message", data, err)
	}
	a := answer{t, http.StatusOK, nil, []byte(data[0])}
	if r := a.rpc(http.StatusOK); string(r.ID) != `"x"` {
		t.Errorf("got id %s, want the one that was sent", r.ID)
	}
	a.outcome().says(t, false, `at\nlast`)

	// A client that reads JSON only is left to wait.
	done := g.later(t.Context(), "", calling("1", "agent_ask", asking), "Accept: */*")
	bob.say(bob.next(core.KindAssigned), core.Done{})
	if late := <-done; late.header.Get("Content-Type") != "application/json" {
		t.Errorf("got %q, want JSON", late.header.Get("Content-Type"))
	}
}

func TestClosingTheDoorEndsWhatRuns(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	ann, bob := g.actor("ann"), g.actor("bob")
	token, _ := g.door.Issue(ann.Session)
	mine, anybodys := g.later(t.Context(), "/"+token, calling("1", "agent_ask", asking)), g.later(t.Context(), "", calling("1", "agent_ask", asking))
	first, second := bob.next(core.KindAssigned), bob.next(core.KindAssigned)
	g.door.Close()
	(<-mine).outcome().says(t, true, "unreachable: the hub is stopping")
	(<-anybodys).outcome().says(t, true, "unreachable: the hub is stopping")
	bob.say(first, core.Cancelled{})
	bob.say(second, core.Cancelled{})
	g.post("", hello).fails(http.StatusServiceUnavailable, -32000, "the hub is stopping")
	g.post("/"+token, hello).fails(http.StatusServiceUnavailable, -32000, "the hub is stopping")
}
