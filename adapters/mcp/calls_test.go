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

// askBob is the input of an agent_ask.
const askBob = `{"to":"bob","content":"how much?"}`

// later sends a message in a goroutine and sends the answer to the channel.
func (g *testServer) later(ctx context.Context, path, body string, headers ...string) <-chan answer {
	done := make(chan answer, 1)
	go func() {
		defer close(done)
		resp, err := g.send(ctx, http.MethodPost, path, body, headers...)
		if err != nil {
			return
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		done <- answer{g.t, resp.StatusCode, resp.Header, b}
	}()
	return done
}

func TestAnAgentAsksAnotherUnderItsOwnID(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	ann, bob := g.agent("ann"), g.agent("bob")
	token, revoke := g.server.Issue(ann.Session)
	defer revoke()
	for _, how := range []struct{ path, header string }{
		{"/" + token, ""}, {"/" + token + "/", ""}, {fmt.Sprintf("/%%%x%s", token[0], token[1:]), ""},
		{"", "Authorization: Bearer " + token}, {"", "Authorization: bearer " + token}, {"/" + token, "Authorization: Bearer " + token},
	} {
		var headers []string
		if how.header != "" {
			headers = append(headers, how.header)
		}
		done := g.later(t.Context(), how.path, toolCall("1", "agent_ask", askBob), headers...)
		task := bob.next(core.KindAssigned)
		if task.From().ID != "ann" || task.Request().Content != "how much?" {
			t.Errorf("got %q from %+v, want how much? from ann", task.Request().Content, task.From())
		}
		bob.report(task, core.Text{Text: "forty"}, core.Text{Text: "-two"}, core.Done{Data: json.RawMessage(`{"n":42}`)})
		o := (<-done).outcome()
		o.contains(t, false, `"text":"forty-two","data":{"n":42}`)
		o.contains(t, false, string(task.ID()))
	}
}

func TestAFailureIncludesTheOutputBeforeIt(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	bob := g.agent("bob")
	done := g.later(t.Context(), "", toolCall("1", "agent_ask", askBob))
	task := bob.next(core.KindAssigned)
	if task.From().ID != "anybody" {
		t.Errorf("got %+v, want anybody", task.From())
	}
	bob.report(task, core.Text{Text: "half an answer"}, core.Failed{Fault: core.NewFault(core.CodeOverloaded, "too much at once")})
	o := (<-done).outcome()
	o.contains(t, true, "overloaded: too much at once")
	o.contains(t, true, "half an answer")
	if len(o.Content) != 2 {
		t.Errorf("got %+v, want the fault and the output as two texts", o)
	}
}

func TestALoopThroughMCPIsRefused(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	ann, bob := g.agent("ann"), g.agent("bob")
	token, revoke := g.server.Issue(bob.Session)
	defer revoke()
	asked, err := ann.Open(core.Request{To: core.ToAgent("bob"), Content: "do"}, hub.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bob.next(core.KindAssigned)
	g.post("/"+token, toolCall("1", "agent_ask", `{"to":"ann","content":"you do"}`)).outcome().contains(t, true, "loop: ")
	g.post("/"+token, toolCall("1", "agent_ask", `{"to":"bob","content":"I do"}`)).outcome().contains(t, true, "loop: ")
	// A task that it delegates is caused by the task that it works on.
	g.agent("carl")
	g.post("/"+token, toolCall("1", "agent_delegate", `{"to":"carl","content":"you do"}`)).outcome().contains(t, false, `"accepted":true`)
	bob.report(asked, core.Done{})
}

func TestATokenEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	ann, bob := g.agent("ann"), g.agent("bob")
	token, revoke := g.server.Issue(ann.Session)
	done := g.later(t.Context(), "/"+token, toolCall("1", "agent_ask", askBob))
	task := bob.next(core.KindAssigned)
	revoke()
	revoke() // does nothing
	(<-done).outcome().contains(t, true, "has ended")
	if got := bob.next(core.KindCancelRequested); got != task {
		t.Errorf("got a cancel of %s, want one of %s", got.ID(), task.ID())
	}
	bob.report(task, core.Cancelled{})
	for _, a := range []answer{
		g.post("/"+token, toolCall("7", "agents_list", `{}`)),
		g.post("", toolCall("7", "agents_list", `{}`), "Authorization: Bearer "+token),
		g.post("/nonsense", toolCall("7", "agents_list", `{}`)),
	} {
		a.fails(http.StatusUnauthorized, -32600, "connect again")
		if got := a.header.Get("WWW-Authenticate"); !strings.HasSuffix(got, `error="invalid_token"`) {
			t.Errorf("got WWW-Authenticate %q, want that the token is invalid", got)
		}
	}
}

func TestAMalformedTokenIsRefused(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	token, revoke := g.server.Issue(g.agent("ann").Session)
	defer revoke()
	g.post("/"+token, hello, "Authorization: Bearer other").fails(http.StatusUnauthorized, -32600, "differ")
	g.post("", hello, "Authorization: Basic "+token).fails(http.StatusUnauthorized, -32600, "Bearer")
	g.post("", hello, "Authorization: Bearer").fails(http.StatusUnauthorized, -32600, "Bearer")
	g.post("/"+token+"/more", hello).fails(http.StatusUnauthorized, -32600, "unknown")
}

func TestATokenIsRequiredWithoutAnAnonymousPrincipal(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	closed := mcp.New(g.hub, mcp.Options{})
	defer closed.Close()
	g.serve(closed)
	g.post("", hello).fails(http.StatusUnauthorized, -32600, "mcp_token")
}

func TestClosingTheConnectionCancelsTheCall(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	bob := g.agent("bob")
	ctx, disconnect := context.WithCancel(t.Context())
	done := g.later(ctx, "", toolCall("1", "agent_ask", askBob))
	task := bob.next(core.KindAssigned)
	disconnect()
	<-done
	if got := bob.next(core.KindCancelRequested); got != task {
		t.Errorf("got a cancel of %s, want one of %s", got.ID(), task.ID())
	}
	bob.report(task, core.Cancelled{})
}

func TestACallIsCancelledOnlyInItsOwnSession(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	bob := g.agent("bob")
	own, other := g.post("", hello).header.Get("Mcp-Session-Id"), g.post("", hello).header.Get("Mcp-Session-Id")
	if own == "" || own == other {
		t.Fatalf("got sessions %q and %q, want two", own, other)
	}
	done := g.later(t.Context(), "", toolCall("4", "agent_ask", askBob), "Mcp-Session-Id: "+own)
	task := bob.next(core.KindAssigned)
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4,"reason":"changed my mind"}}`
	g.post("", cancel)
	g.post("", cancel, "Mcp-Session-Id: "+other)
	g.post("", strings.Replace(cancel, "4", "5", 1), "Mcp-Session-Id: "+own)
	bob.report(task, core.Text{Text: "still running"})
	g.post("", cancel, "Mcp-Session-Id: "+own)
	(<-done).outcome().contains(t, true, "changed my mind")
	bob.next(core.KindCancelRequested)
	bob.report(task, core.Cancelled{})
}

func TestTooManyCallsAreRefused(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{MaxCalls: 2})
	ann, bob := g.agent("ann"), g.agent("bob")
	token, revoke := g.server.Issue(ann.Session)
	defer revoke()
	var waiting []<-chan answer
	var tasks []*task.Task
	for range 2 {
		waiting = append(waiting, g.later(t.Context(), "/"+token, toolCall("1", "agent_ask", askBob)))
		tasks = append(tasks, bob.next(core.KindAssigned))
	}
	g.post("/"+token, toolCall("1", "agents_list", `{}`)).outcome().contains(t, true, "overloaded: 2 tools are running")
	g.post("", toolCall("1", "agents_list", `{}`)).outcome().contains(t, false, "agents") // another holder
	for i, task := range tasks {
		bob.report(task, core.Done{})
		(<-waiting[i]).outcome().contains(t, false, "task_id")
	}
	g.post("/"+token, toolCall("1", "agents_list", `{}`)).outcome().contains(t, false, "agents")
}

func TestACallThatTakesTooLongIsStopped(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{CallTimeout: 50 * time.Millisecond})
	bob := g.agent("bob")
	g.post("", toolCall("1", "agent_ask", askBob)).outcome().contains(t, true, "timeout: agent_ask took longer than 50ms")
	task := bob.next(core.KindCancelRequested)
	bob.report(task, core.Cancelled{})
}

func TestALongCallGetsKeepAliveComments(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{StreamAfter: time.Millisecond, KeepAlive: time.Millisecond})
	bob := g.agent("bob")
	resp, err := g.send(t.Context(), http.MethodPost, "", toolCall(`"x"`, "agent_ask", askBob), "Accept: application/json, text/event-stream")
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
			t.Errorf("got %q, want comments", lines.Text())
		}
	}
	bob.report(bob.next(core.KindAssigned), core.Text{Text: "at\nlast"}, core.Done{})
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
		t.Errorf("got id %s, want the id of the request", r.ID)
	}
	a.outcome().contains(t, false, `at\nlast`)

	// A client that accepts only JSON waits.
	done := g.later(t.Context(), "", toolCall("1", "agent_ask", askBob), "Accept: */*")
	bob.report(bob.next(core.KindAssigned), core.Done{})
	if late := <-done; late.header.Get("Content-Type") != "application/json" {
		t.Errorf("got %q, want JSON", late.header.Get("Content-Type"))
	}
}

func TestClosingTheServerEndsRunningCalls(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	ann, bob := g.agent("ann"), g.agent("bob")
	token, _ := g.server.Issue(ann.Session)
	own, anonymous := g.later(t.Context(), "/"+token, toolCall("1", "agent_ask", askBob)), g.later(t.Context(), "", toolCall("1", "agent_ask", askBob))
	first, second := bob.next(core.KindAssigned), bob.next(core.KindAssigned)
	g.server.Close()
	(<-own).outcome().contains(t, true, "unreachable: the hub is stopping")
	(<-anonymous).outcome().contains(t, true, "unreachable: the hub is stopping")
	bob.report(first, core.Cancelled{})
	bob.report(second, core.Cancelled{})
	g.post("", hello).fails(http.StatusServiceUnavailable, -32000, "the hub is stopping")
	g.post("/"+token, hello).fails(http.StatusServiceUnavailable, -32000, "the hub is stopping")
}
