package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/native"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	corehub "github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// said opens a task in a conversation, and returns it once it is done.
func (w hubAgent) said(user *corehub.Session, thread core.ThreadID, content string, answer ...core.Body) *task.Task {
	w.Helper()
	if _, err := user.Open(core.Request{To: core.ToAgent(w.AgentID()), Content: content, Thread: thread}, corehub.OpenOptions{Unwatched: true}); err != nil {
		w.Fatal(err)
	}
	given := w.nextTask()
	w.report(given, append(answer, core.Done{})...)
	return given
}

// What waits is decided where it is read, by the keyboard, and carries the checksum of what was shown.
func TestAPersonDecidesInTheConversation(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	b := newBrowser(t, h.url())
	agent := h.joinAgent(t, "worker")
	asked := givenTo(t, h, agent, "alice", "tidy up")
	p := b.open("/#/conversations/" + string(asked.Thread()))
	p.shows(".part.opened", "tidy up")
	const input = `{"command":"rm -rf build\nmake","note":"\u202e"}`
	agent.report(asked, core.Accepted{}, core.Text{Text: "I shall **clean** first."}, core.ToolCall{ID: "k", Name: "Bash", Input: input}, core.ApprovalRequested{ID: "k", Name: "Bash", Input: input})
	p.shows(".part.tool .card h2", "worker wants to call Bash")
	p.shows(".working", "waiting for a person")
	p.shows(".talk-list .is.waiting", "waiting for you")
	if got := p.await(`document.querySelector('.part.tool .whole-input pre').textContent.replace(/\s/g, '')`); got != `{"command":"rm-rfbuild\nmake","note":"\u202e"}` {
		t.Errorf("got %s to decide on, want the input letter by letter", got)
	}
	p.await(`!document.querySelector('.card [data-do="approve"]').disabled`)
	p.click("h1")
	p.key("j", "a")
	sum := sha256.Sum256([]byte(input))
	if d := agent.decision(); !d.Approved || d.InputSHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("got %+v, want the approval of what was shown", d)
	}
	p.shows(".part.tool .decided summary", "Approved by local Bash")
	p.click("h1") // a card that has the focus stays
	p.await(`!document.querySelector('.part.tool .card')`)

	agent.CallTool("q", "ask_user", json.RawMessage(`{"question":"Which branch?","options":[{"label":"main"},{"label":"next"}]}`))
	p.shows(".part.question .words", "Which branch?")
	p.click(`.part.question .card input[value="next"]`)
	p.click(`.part.question .card button[type="submit"]`)
	agent.next(func(b corehub.Batch) bool { return b.Tool != nil && strings.Contains(string(b.Tool.Output), "next") })
	p.shows(".part.question .answered", "local answered: next")

	agent.report(asked, core.ToolCall{ID: "below", Name: "Read", Input: `{"path":"a.go"}`, Parent: "k"}, core.ToolResult{ID: "below", Output: "package a"},
		core.ToolResult{ID: "k", Output: "cleaned"}, core.Done{})
	p.shows(".part.tool .below .part.tool summary", "a.go")
	p.click(".part.tool > details > summary")
	p.shows(".part.tool .io", "cleaned")
	p.shows(".foot", "worker · ")
}

// A conversation goes on with another agent, branches, and both stay what they are.
func TestAConversationGoesOnWithAnotherAgentAndBranches(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	b := newBrowser(t, h.url())
	first, second := h.joinAgent(t, "ada"), h.joinAgent(t, "bob")
	user := h.service.Hub().Connect(corehub.Identity{Principal: core.Principal{ID: "local", Operator: true}})
	t.Cleanup(func() { user.Close(nil) })
	first.said(user, "trip", "Where to?", core.Text{Text: "To Lisbon."})
	p := b.open("/#/conversations/trip")
	p.shows(".part.text", "To Lisbon.")
	p.await(`document.querySelector('#to').value === 'ada'`)
	p.await(`(() => { const s = document.querySelector('#to'); s.value = 'bob'; s.dispatchEvent(new Event('change')); return true; })()`)
	p.shows(".compose .hint", "bob goes on with the conversation so far.")
	p.byRole("textbox", "What to ask").click()
	p.write("When?")
	p.key("Enter")
	given := second.nextTask()
	if n := len(given.Request().History); given.Thread() != "trip" || n != 2 {
		t.Errorf("got a question in %s with %d earlier turns, want it in trip with 2", given.Thread(), n)
	}
	second.report(given, core.Text{Text: "At 21:43."}, core.Done{})
	p.shows(".part.handover", "bob handed over from ada with 2 turns")
	p.shows(".turns > li:last-child .part.text", "At 21:43.")

	p.byRole("link", "Branch from here").click()
	p.shows("h1", "New branch")
	p.await(`document.querySelector('#to').value === 'ada'`)
	p.byRole("textbox", "What to ask").click()
	p.write("Rather to Porto?")
	p.key("Enter")
	branched := first.nextTask()
	if branched.Thread() == "trip" {
		t.Error("got the branch in the conversation that it comes from, want a new one")
	}
	first.report(branched, core.Text{Text: "Porto it is."}, core.Done{})
	p.shows(".earlier summary", "2 earlier turns, from another conversation")
	p.click(".earlier summary")
	p.shows(".earlier li", "To Lisbon.")
	p.shows(".part.text", "Porto it is.")
	p.visit("/#/conversations/trip")
	p.await(`document.querySelectorAll('.turns > li').length === 2`)
}

// One question to several agents: the answers stand side by side, each as it comes, and one goes on with one of them.
func TestSeveralAnswersStandSideBySide(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	b := newBrowser(t, h.url())
	agents := map[string]hubAgent{}
	for _, id := range []string{"ada", "bob", "cleo", "dan", "eve"} {
		agents[id] = h.joinAgent(t, core.AgentID(id))
	}
	p := b.open("/#/new")
	p.byRole("DisclosureTriangle", "Ask several").click()
	for _, id := range []string{"ada", "bob", "cleo", "dan"} {
		p.byRole("checkbox", id).click()
	}
	p.await(`document.querySelector('.several input[value="eve"]').disabled`) // four are enough
	p.click(`.several input[value="dan"]`)
	p.byRole("textbox", "What to ask").click()
	p.write("What is a monad?")
	p.key("Enter")
	given := map[string]*task.Task{}
	for _, id := range []string{"ada", "bob", "cleo"} {
		given[id] = agents[id].nextTask()
		agents[id].report(given[id], core.Text{Text: "A thing, says " + id + "."})
	}
	p.shows("h1", "What is a monad?")
	for _, id := range []string{"ada", "bob", "cleo"} {
		p.shows(`.column[aria-label="Answer of `+id+`"] .part.text`, "A thing, says "+id+".")
	}
	agents["bob"].report(given["bob"], core.ToolCall{ID: "k", Name: "rm", Input: "{}"}, core.ApprovalRequested{ID: "k", Name: "rm", Input: "{}"})
	p.click(`.column[aria-label="Answer of bob"] .card [data-do="deny"]`)
	if d := agents["bob"].decision(); d.Approved {
		t.Errorf("got %+v, want it denied", d)
	}
	for id, task := range given {
		agents[id].report(task, core.Done{})
	}
	p.await(`document.querySelectorAll('.column .turn.done').length === 3`)
	p.click(`.column[aria-label="Answer of cleo"] .top a`)
	p.await(`location.hash === '#/conversations/` + string(given["cleo"].Thread()) + `'`)
	p.shows(".part.text", "A thing, says cleo.")
}

// 60 conversations are listed by their first words; a search finds a turn and opens the conversation there, on a narrow screen too.
func TestConversationsAreListedAndSearched(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	b := newBrowser(t, h.url())
	p := b.open("/")
	p.shows(".side .state", "No conversation yet.")
	p.shows(".pane .state", "dragoman add claude")
	agent := h.joinAgent(t, "worker")
	user := h.service.Hub().Connect(corehub.Identity{Principal: core.Principal{ID: "alice", Operator: true}})
	t.Cleanup(func() { user.Close(nil) })
	for i := range 61 {
		agent.said(user, core.ThreadID("talk-"+strconv.Itoa(i)), "Question number "+strconv.Itoa(i)+"?", core.Text{Text: "Answer " + strconv.Itoa(i) + "."})
	}
	for i := range 25 {
		agent.said(user, "talk-7", "And then, "+strconv.Itoa(i)+"?", core.Text{Text: "The teapot stands " + strconv.Itoa(i) + " steps away."})
	}
	p.await(`document.querySelectorAll('.talk-list li').length === 60`)
	p.shows(".talk-list li:first-child .title", "Question number 7?")
	p.byRole("button", "Show older ones").click()
	p.await(`document.querySelectorAll('.talk-list li').length === 61`)
	p.byRole("searchbox", "Search in what was said").click()
	p.write("stands 2 steps")
	p.shows(".side .state", "1 turn.")
	p.click(".talk-list a")
	p.await(`location.hash.startsWith('#/conversations/talk-7/')`)
	p.await(`document.activeElement.matches('.turn') && document.activeElement.textContent.includes('The teapot stands 2 steps away.')`)
	p.size(375, 812)
	p.await(`getComputedStyle(document.querySelector('.side')).display === 'none'`)
	p.click(".back")
	p.await(`location.hash === '#/conversations' && getComputedStyle(document.querySelector('.pane')).display === 'none'`)
	p.await(`document.documentElement.scrollWidth <= 375`)
}

// Without a mouse: from the list into the box, and to what waits.
func TestAConversationIsUsedByTheKeyboardAlone(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	b := newBrowser(t, h.url())
	agent := h.joinAgent(t, "worker")
	user := h.service.Hub().Connect(corehub.Identity{Principal: core.Principal{ID: "local", Operator: true}})
	t.Cleanup(func() { user.Close(nil) })
	agent.said(user, "trip", "Where to?", core.Text{Text: "To Lisbon."})
	p := b.open("/#/conversations")
	p.size(375, 812)
	p.shows(".talk-list .title", "Where to?")
	focus := func(want string) {
		t.Helper()
		for range 60 {
			if p.await(`(document.activeElement.getAttribute('aria-label') || document.activeElement.innerText || document.activeElement.tagName) + ''`) == want {
				return
			}
			p.key("Tab")
		}
		t.Fatalf("got to no %q by Tab", want)
	}
	p.await(`(document.activeElement.blur(), true)`)
	p.await(`(document.querySelector('#skip').focus(), true)`)
	link := p.await(`document.querySelector('.talk-list a').innerText`)
	focus(link)
	p.key("Enter")
	p.shows(".part.text", "To Lisbon.")
	focus("What to ask")
	p.write("Book it")
	p.key("Enter")
	given := agent.nextTask()
	const input = `{"seat":12}`
	agent.report(given, core.ToolCall{ID: "k", Name: "book", Input: input}, core.ApprovalRequested{ID: "k", Name: "book", Input: input})
	p.await(`document.querySelector('.card [data-do="approve"]:not([disabled])')`)
	p.key("Escape") // out of the box, so that letters are keys
	p.key("j", "d")
	if d := agent.decision(); d.Approved {
		t.Errorf("got %+v, want it denied", d)
	}
	agent.report(given, core.Done{Text: "Then not."})
	p.shows(".part.done", "Then not.")
	if got := p.await(`'' + Math.max(0, document.documentElement.scrollWidth - innerWidth)`); got != "0" {
		t.Errorf("got a page that is %s pixels wider than the screen, want it to fit", got)
	}
}

// slow counts the tasks of the page that take longer than 50 ms, from now on.
const slow = `(() => { window.longest = 0; window.slow?.disconnect(); window.slow = new PerformanceObserver((l) => { for (const e of l.getEntries()) window.longest = Math.max(window.longest, e.duration); }); window.slow.observe({type: 'longtask'}); return true; })()`

// A conversation of 500 turns opens with its end in view, is read up to its beginning, and stays so while 1,000 events a
// second arrive.
func TestALongConversationOpensAtItsEnd(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, func(c *config.Config) { c.Limits.FinishedTasks = 2000 })
	b := newBrowser(t, h.url())
	agent := h.joinAgent(t, "worker")
	user := h.service.Hub().Connect(corehub.Identity{Principal: core.Principal{ID: "local", Operator: true}})
	t.Cleanup(func() { user.Close(nil) })
	const turns = 500
	for i := range turns {
		agent.said(user, "long", fmt.Sprintf("Question %d?", i), core.ToolCall{ID: "1", Name: "Read", Input: `{"path":"a.go"}`}, core.ToolResult{ID: "1", Output: strings.Repeat("package a\n", 20)},
			core.Text{Text: fmt.Sprintf("Answer **%d**:\n\n- one\n- two\n\n```go\nfunc f() int { return %d }\n```\n\nIt goes on for a while. %s", i, i, strings.Repeat("And on. ", 40))}, core.Usage{Input: 100, Output: 20})
	}
	b.open("/#/hub").shows(".facts", "Running") // the browser has started
	p := b.open("/#/conversations/long")
	const atEnd = `(() => { const s = document.querySelector('.talk'), e = document.querySelector('.turns > li:last-child .foot')?.getBoundingClientRect(); return e && e.height && e.bottom <= s.getBoundingClientRect().bottom + 1 && document.querySelector('.turns > li:last-child').textContent.includes('Answer 499'); })()`
	took := p.await(`(` + atEnd + `) && '' + Math.round(performance.now())`)
	p.await(slow)
	p.await(`(() => { document.querySelector('.talk').scrollTop -= 700; return document.querySelector('.turns > li:first-child').textContent.includes('Question 0?'); })()`)
	p.shows(".talk .state", "The beginning. 500 turns.")
	if got := p.await(`document.querySelectorAll('.turns > li').length + ' ' + [...document.querySelectorAll('.turns > li')].every((e, i) => e.textContent.includes('Question ' + i + '?'))`); got != "500 true" {
		t.Errorf("got %s turns in order, want 500", got)
	}
	up := p.await(`'' + Math.round(window.longest)`)

	p.byRole("button", "To the end ↓").click()
	p.await(atEnd)
	if _, err := user.Open(core.Request{To: core.ToAgent("worker"), Content: "Talk", Thread: "long"}, corehub.OpenOptions{Unwatched: true}); err != nil {
		t.Fatal(err)
	}
	talk := agent.nextTask()
	agent.report(talk, core.Text{Text: "begun\n\n"})
	p.shows(".turns > li:last-child .part.text", "begun")
	p.await(slow)
	pace := time.NewTicker(10 * time.Millisecond)
	defer pace.Stop()
	const events = 5000
	for i := range events {
		if i%10 == 0 {
			<-pace.C
		}
		agent.report(talk, core.Text{Text: fmt.Sprintf("piece %d%s", i, map[bool]string{true: ".\n\n", false: " "}[i%12 == 11])})
	}
	p.shows(".turns > li:last-child .part.text", "piece "+strconv.Itoa(events-1))
	live := p.await(`'' + Math.round(window.longest)`)
	p.await(`(() => { const s = document.querySelector('.talk'); return s.scrollTop + s.clientHeight >= s.scrollHeight - 2; })()`)
	agent.report(talk, core.Done{})
	p.shows(".turns > li:last-child .foot", "worker")
	t.Logf("the end was in view %s ms after the page was asked for; the longest pause was %s ms while 500 turns were read up, and %s ms while 1,000 events a second came", took, up, live)
}

// A stream that is cut in the middle of a turn that has ended, as behind a proxy, is resumed: the turn is whole, and nothing of it is there twice.
func TestATurnThatIsCutWhileItIsReadIsWhole(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	agent := h.joinAgent(t, "worker")
	user := h.service.Hub().Connect(corehub.Identity{Principal: core.Principal{ID: "local", Operator: true}})
	t.Cleanup(func() { user.Close(nil) })
	agent.said(user, "cut", "Count", core.ToolCall{ID: "1", Name: "count", Input: "{}"}, core.ToolResult{ID: "1", Output: "so far"}, core.Text{Text: "one, "}, core.Text{Text: "two, "}, core.Text{Text: "three."})
	to, err := url.Parse(h.url())
	if err != nil {
		t.Fatal(err)
	}
	var cuts atomic.Int64
	pass := httputil.NewSingleHostReverseProxy(to)
	pass.FlushInterval = -1
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/events") || cuts.Add(1) > 2 {
			pass.ServeHTTP(w, r)
			return
		}
		whole := httptest.NewRecorder()
		pass.ServeHTTP(whole, r)
		for name, values := range whole.Header() {
			w.Header()[name] = values
		}
		_, _ = w.Write(whole.Body.Bytes()[:whole.Body.Len()/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(proxy.Close)
	p := newBrowser(t, proxy.URL).open("/#/conversations/cut")
	p.shows(".part.text", "three.")
	p.shows(".foot", "worker")
	if got := p.await(`[...document.querySelectorAll('.part.text')].map((e) => e.querySelector('.prose').innerText).join('|') + ' ' + document.querySelectorAll('.part.tool').length`); got != "one, two, three. 1" {
		t.Errorf("got %s, want the text and the call once", got)
	}
	if got := p.await(`'state: ' + document.querySelector('.talk .state').textContent`); got != "state: " {
		t.Errorf("got %q, want no complaint once it is read", got)
	}
	if cuts.Load() < 3 {
		t.Errorf("got %d requests for events, want two that were cut and another", cuts.Load())
	}
}

// The hub of an open conversation is killed and comes back: nothing is missing and nothing is there twice, and one asks on.
func TestAnOpenConversationOutlivesItsHub(t *testing.T) {
	t.Parallel()
	dir, address, grpc := t.TempDir(), fixedAddr(t), fixedAddr(t)
	serve := func() *servedHub {
		return serveHubCmd(t, program(t, "serve", "--data-dir", dir, "--grpc-addr", grpc, "--http-addr", address, "--pi-addr", "", "--log-format", "json"), "always")
	}
	first := serve()
	b := newBrowser(t, "http://"+address)
	ctx, leave := context.WithCancel(t.Context())
	joined, ended := make(chan struct{}, 8), make(chan error, 1)
	go func() {
		for ctx.Err() == nil { // as an agent that comes back
			_ = service.Joins()[native.Dialect](ctx, client.Hub{URL: "http://" + address}, core.Card{ID: "keeper"}, func(ctx context.Context, r core.Request, say func(core.Body) error) error {
				if r.Content == "wait" {
					_ = say(core.Text{Text: "half an answer"})
					<-ctx.Done()
					return ctx.Err()
				}
				return say(core.Text{Text: "whole: " + r.Content})
			}, func(client.AskFunc) { joined <- struct{}{} }, slog.New(slog.DiscardHandler))
		}
		ended <- nil
	}()
	defer func() {
		leave()
		<-ended
	}()
	<-joined
	p := b.open("/#/conversations/kept")
	ask := func(words string) {
		p.await(`[...document.querySelectorAll('#to option')].some((o) => o.value === 'keeper' && !o.textContent.includes('not here'))`)
		p.byRole("textbox", "What to ask").click()
		p.write(words)
		p.key("Enter")
	}
	ask("one")
	p.shows(".part.text", "whole: one")
	ask("wait")
	p.shows(".turns > li:last-child .part.text", "half an answer")
	first.kill()
	p.shows("#connection", "Connection lost. What you see is as of ")
	p.shows(".talk .state", "The connection was lost; what follows comes when the hub is back.")
	serve()
	p.await(`document.querySelector('#connection').textContent === ''`)
	p.shows(".part.failed", "unreachable")
	if got := p.await(`['.turns > li', '.part.text', '.part.failed'].map((s) => document.querySelectorAll(s).length).join(' ')`); got != "2 2 1" {
		t.Errorf("got %s turns, texts and ends, want 2, 2 and 1", got)
	}
	<-joined
	ask("two")
	p.shows(".turns > li:last-child .part.text", "whole: two")
}

// At any hub of a cluster a conversation is the same: it is read, decided and continued at the one hub while its agent is at the other.
func TestAConversationIsTheSameAtEachHub(t *testing.T) {
	t.Parallel()
	all := startCluster(t, 3)
	here, there := all[0], all[1]
	ctx, leave := context.WithCancel(t.Context())
	joined, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- service.Joins()[native.Dialect](ctx, client.Hub{URL: there.URL}, core.Card{ID: "far", Features: core.FeatureStreaming}, func(_ context.Context, r core.Request, say func(core.Body) error) error {
			return say(core.Text{Text: "from afar: " + r.Content})
		}, func(client.AskFunc) { close(joined) }, slog.New(slog.DiscardHandler))
	}()
	defer func() {
		leave()
		<-ended
	}()
	<-joined
	here.until("the agent is known", func() error { return here.Get(t.Context(), "/v1/agents/far", &struct{}{}) })
	p := newBrowser(t, here.URL).open("/#/new?to=far")
	p.await(`document.querySelector('#to').value === 'far'`)
	p.byRole("textbox", "What to ask").click()
	p.write("hello")
	p.key("Enter")
	p.shows(".part.text", "from afar: hello")
	address := p.await(`location.hash`)
	other := newBrowser(t, there.URL).open("/" + address)
	other.shows(".part.text", "from afar: hello")
	other.await(`document.querySelector('#to').value === 'far'`)
	other.byRole("textbox", "What to ask").click()
	other.write("and now?")
	other.key("Enter")
	for _, page := range []*tab{other, p} {
		page.shows(".turns > li:last-child .part.text", "from afar: and now?")
		page.await(`document.querySelectorAll('.turns > li').length === 2`)
	}
}
