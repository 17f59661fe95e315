package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	corehub "github.com/dragoman-hub/dragoman/core/hub"
)

func TestAPersonAsksSteersAndStopsOnTheConsole(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	b := newBrowser(t, h.url())
	agent := h.joinAgent(t, "worker")
	p := b.open("/#/new?to=worker")
	p.await(`document.querySelector('#to').value === 'worker'`)
	p.byRole("textbox", "What to ask").click()
	p.write("dig a hole")
	p.key("Enter")
	task := agent.nextTask()
	agent.report(task, core.Accepted{}, core.Text{Text: "I dig"})
	p.await(`location.hash === '#/conversations/` + string(task.Thread()) + `'`)
	p.shows(".part.opened", "dig a hole")
	p.shows(".part.text", "I dig")
	p.shows(".working", "worker · ")
	p.shows(".talk-list a[aria-current]", "dig a hole")

	p.byRole("textbox", "What to ask").click()
	p.write("deeper")
	p.byRole("button", "Tell it now").click()
	var told core.Injected
	for _, e := range agent.next(func(b corehub.Batch) bool { return has[core.Injected](b) }).Events {
		if i, ok := e.Body.(core.Injected); ok {
			told = i
		}
	}
	if told.Content != "deeper" {
		t.Errorf("got %+v, want what was written", told)
	}
	agent.report(task, core.InjectionAnswered{ID: told.ID, Accepted: true})
	p.shows(".note", "The agent took it.")
	p.shows(".part.injected", "deeper")

	p.byRole("button", "Stop").click()
	agent.next(func(b corehub.Batch) bool { return has[core.CancelRequested](b) })
	agent.report(task, core.Cancelled{Reason: "as you wish"})
	p.shows(".part.cancelled", "as you wish")
	p.byRole("button", "Ask again").click()
	again := agent.nextTask()
	if r := again.Request(); r.Content != "dig a hole" || again.Thread() != task.Thread() {
		t.Errorf("asked again: got %q in %s, want what was asked in %s", r.Content, again.Thread(), task.Thread())
	}
	agent.report(again, core.Done{Text: "a hole"})
	p.shows(".turns > li:last-child .part.done", "a hole")

	// What follows goes to the same agent, in the same conversation.
	p.byRole("textbox", "What to ask").click()
	p.write("and now?")
	p.key("Enter")
	next := agent.nextTask()
	if next.Thread() != task.Thread() {
		t.Errorf("got a question in %s, want it in %s", next.Thread(), task.Thread())
	}
	agent.report(next, core.Failed{Fault: core.NewFault(core.CodeInternal, "the spade broke")})
	p.shows(".turns > li:last-child .part.failed", "the spade broke")
	p.byRole("button", "Ask another agent").click()
	p.await(`document.activeElement.id === 'to' && document.querySelector('#words').value === 'and now?'`)
}

// What an agent has announced is offered for one question, and nothing else is.
func TestAPersonSetsAnAgentForOneQuestion(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	b := newBrowser(t, h.url())
	agent := h.joinAgent(t, "coder", func(c *core.Card) {
		c.Features |= core.FeatureOptions
		c.Metadata = map[string]json.RawMessage{
			"configOptions": json.RawMessage(`[{"id":"model","name":"Model","type":"select","currentValue":"a","options":[{"group":"g","name":"G","options":[{"value":"a","name":"A one"},{"value":"b"}]}]},
				{"id":"web","name":"<b>Web</b>","type":"boolean","currentValue":false},{"id":7}]`),
			"modes": json.RawMessage(`{"currentModeId":"auto","availableModes":[{"id":"auto","name":"Auto"},{"id":"plan","name":"Plan"}]}`),
		}
	})
	p := b.open("/#/new?to=coder")
	p.await(`document.querySelectorAll('.options select').length === 3`)
	p.click(".options summary")
	p.await(`[...document.querySelectorAll('#option-mode option')].map((o) => o.textContent).join() === 'as it is: auto,Auto,Plan'`)
	p.await(`(document.querySelector('#option-mode').value = 'plan', document.querySelector('#option-web').value = 'true', true)`)
	p.shows(".options label", "<b>Web</b>")
	p.byRole("textbox", "What to ask").click()
	p.write("how would you do it?")
	p.key("Enter")
	task := agent.nextTask()
	if got := task.Request().Options; len(got) != 2 || got["mode"] != "plan" || got["web"] != "true" {
		t.Errorf("got the options %v, want mode and web", got)
	}
	agent.report(task, core.Done{Text: "so"})
}

// Nobody has the conversation open: the console counts as people, for those who may answer there.
func TestAPersonAnswersAQuestionOnTheConsole(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	b := newBrowser(t, h.url())
	agent := h.joinAgent(t, "worker")
	task := givenTo(t, h, agent, "alice", "plan")
	agent.CallTool("alone", "ask_user", json.RawMessage(`{"question":"Is anybody here?"}`))
	agent.next(func(b corehub.Batch) bool { return b.Tool != nil && b.Tool.Call == "alone" && b.Tool.Fault != nil })

	p := b.open("/#/waiting")
	p.shows(".state", "Nothing waits for you.")
	other := b.open("/#/hub")
	other.shows(".facts", "Running")
	agent.CallTool("q", "ask_user", json.RawMessage(`{"question":"When, `+strings.ReplaceAll(hostile, `"`, `\"`)+`?","options":[{"label":"Friday"},{"label":"Sunday","description":"late"}]}`))
	p.shows(".card legend", "When, "+hostile)
	other.await(`document.querySelector('#badge').textContent === '1'`)
	if got := other.nameOf("#views a[data-view=waiting]"); got != "Waiting, 1" {
		t.Errorf("the link with the badge is read as %q, want Waiting, 1", got)
	}
	p.click(`.card input[value="Sunday"]`)
	p.click(`.card button[type="submit"]`)
	p.shows(".note", "You answered it.")
	agent.next(func(b corehub.Batch) bool {
		return b.Tool != nil && strings.Contains(fmt.Sprintf("%+v %s", b.Tool, b.Tool.Output), "Sunday")
	})
	agent.report(task, core.Done{Text: "Sunday"})
}

// Only people are waited for; what waits for an agent is queued. Of names of conversations, only generated ones are made short.
func TestTheConsoleNamesQueuesAndConversationsAsPeopleDo(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	b := newBrowser(t, h.url())
	h.joinAgent(t, "worker")
	s := h.service.Hub().Connect(corehub.Identity{Principal: core.Principal{ID: "alice", Authenticated: true}})
	t.Cleanup(func() { s.Close(nil) })
	names := []core.ThreadID{"", "holidays of the whole family"}
	for i := range 9 { // one more than the agent takes at once
		if _, err := s.Open(core.Request{To: core.ToAgent("worker"), Content: "plan", Thread: names[i%2]}, corehub.OpenOptions{Unwatched: true}); err != nil {
			t.Fatal(err)
		}
	}
	p := b.open("/#/hub")
	p.await(`[...document.querySelectorAll('.facts div')].some((e) => e.textContent === 'Queued1')`)
	for _, view := range []string{"/#/agents", "/#/agents/worker"} {
		p.visit(view)
		p.await(`[...document.querySelectorAll('.agents th, .agents dt')].some((e) => e.textContent === 'Queued')`)
		p.await(`![...document.querySelectorAll('.agents th, .agents dt')].some((e) => /Wait/.test(e.textContent))`)
	}
	p.visit("/#/conversations/" + url.PathEscape(string(names[1])))
	p.shows(".pane .opened", "plan")
}

// A pi client asks a Coven agent: the page has both sides, and says what became of each frame.
func TestThePageShowsTheFramesOfBothDialectsSideBySide(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, keepFrames)
	b := newBrowser(t, h.url())
	h.startAgentWith(t, coven.Name, "guide", h.reportEverything)
	h.await(t, "joined guide")
	asker := piOverWebSocket().connect(t, h, "asker")
	t.Cleanup(asker.leave)
	asker.begin(query{to: "guide", content: "look it up " + hostile}).wait(t)
	p := b.open("/#/tasks/" + h.taskOf(t, "guide") + "/frames")
	p.shows(".sides h2", "pi asks · pi-1")
	p.shows(".sides h2", "coven answers · coven-1")
	p.shows(".cell.left .frame.in mark", "look it up <img src=x")
	p.shows(".cell.right .frame.out mark", "look it up <img src=x")
	// What the agent says stands beside what its client is told of it, and nothing else does.
	for kind, words := range map[string]string{"says": "It is here.", "thinks": "let me see", "has the result": "found"} {
		p.await(fmt.Sprintf(`[...document.querySelectorAll('.row-said')].filter((r) => r.querySelector('.what').textContent.includes(%s)).every((r) =>
			[...r.querySelectorAll('.middle .words, .cell.left mark, .cell.right mark')].filter((e) => e.textContent.includes(%s)).length === 3)`, plainJSON(kind), plainJSON(words)))
	}
	p.shows(".cell.left .hint", "told with what follows") // tokens are told as it ends
	for _, disposition := range []string{"native", "folded"} {
		p.shows(".became."+disposition, disposition)
	}
	p.picture("frames-of-both")
	p.click(".filters input")
	if got := p.await(`[...document.querySelectorAll('.row-said')].every((r) => r.querySelector('.became.folded, .became.refused')) && document.querySelectorAll('.row-said').length + ' rows'`); got == "0 rows" {
		t.Errorf("got %s, want those with something folded", got)
	}
}

// The hub of an open page is killed and comes back: the page says as of when it is, and continues.
func TestAnOpenPageOutlivesItsHub(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	address := fixedAddr(t)
	serve := func() *servedHub {
		return serveHubCmd(t, program(t, "serve", "--data-dir", dir, "--grpc-addr", "127.0.0.1:0", "--http-addr", address, "--pi-addr", "", "--log-format", "json"), "interval")
	}
	first := serve()
	b := newBrowser(t, "http://"+address)
	ctx, leave := context.WithCancel(t.Context())
	in, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- service.Joins()[coven.Name](ctx, client.Hub{GRPC: first.grpc}, core.Card{ID: "keeper"}, func(ctx context.Context, _ core.Request, say func(core.Body) error) error {
			_ = say(core.Text{Text: "half an answer"})
			<-ctx.Done()
			return ctx.Err()
		}, func(client.AskFunc) { close(in) }, slog.New(slog.DiscardHandler))
	}()
	defer func() {
		leave()
		<-ended
	}()
	<-in
	var opened struct{ ID string }
	first.post(t, "/v1/tasks", `{"to":"keeper","content":"wait"}`, &opened)
	p := b.open("/#/tasks/" + opened.ID)
	p.shows(".part.text", "half an answer")
	live := b.open("/#/live")
	live.shows(".state", "0 of 0 events")
	first.kill()
	p.shows("#connection", "Connection lost. What you see is as of ")
	p.shows(".part.text", "half an answer")
	serve()
	p.await(`document.querySelector('#connection').textContent === ''`)
	p.shows(".part.failed", "unreachable")
	if got := p.await(`document.querySelectorAll('.part.text').length + ' ' + document.querySelectorAll('.part.failed').length`); got != "1 1" {
		t.Errorf("got %s parts, want the text and the end once", got)
	}
	live.shows(".row .kind", "failed") // it came while nobody was connected
	if got := live.await(`document.querySelector('.state').textContent + [...document.querySelectorAll('.row .kind')].filter((e) => e.textContent === 'failed').length`); strings.Contains(got, "missing") || !strings.HasSuffix(got, "1") {
		t.Errorf("got %q, want the end once and nothing missing", got)
	}
}

// axe are the rules of accessibility that pages are held to.
const axe = "axe-core@4.14.1"

// views are all views of the stage, by the names of their pictures, with what is there once they are
// filled.
func (s *stage) views() []stageView {
	crossed := "tasks/" + s.crossed
	return []stageView{
		{"waiting", "waiting", ".card legend"}, {"agents", "agents", "tbody tr:nth-child(5)"}, {"agent", "agents/librarian", "dd"}, {"live", "live", ".row:nth-child(9)"}, {"tasks", "tasks", ".row:nth-child(6)"},
		{"conversation", "conversations/parser", ".prose table"}, {"decision", "conversations/garden", ".card legend"}, {"several", "several/" + s.crossed + "/" + s.planned, ".column .prose"}, {"new", "new?to=librarian", "#to option"},
		{"task", "tasks/" + string(s.waits.ID()), ".part.tool"}, {"timeline", "tasks/" + s.planned + "/timeline", "svg .bar:nth-of-type(5)"}, {"events", crossed + "/events", ".row"}, {"frames", crossed + "/frames", ".cell.right .frame mark"},
		{"thread", "conversations/" + s.thread, ".part.failed"}, {"usage", "usage", "tbody tr"}, {"hub", "hub", ".facts dd"}, {"nowhere", "nowhere", "h1"},
	}
}

type stageView struct{ name, address, filled string }

// show goes to a view and waits until it is filled.
func (p *tab) show(v stageView) {
	p.Helper()
	if v.address != "live" { // which has what came since it was opened
		p.visit("/#/" + v.address)
	}
	p.await(`location.hash === '#/` + v.address + `' && document.querySelector('main ` + v.filled + `')`)
}

// openLive opens the live view, which shows what happens from then on.
func (b *browser) openLive() *tab {
	b.Helper()
	p := b.open("/#/live")
	p.shows(".state", "0 of 0 events shown")
	return p
}

// scheme makes the page light, dark or of the colours that its reader has forced, and still.
func (p *tab) scheme(name string) {
	p.Helper()
	features := []map[string]string{{"name": "prefers-reduced-motion", "value": "reduce"}, {"name": "prefers-color-scheme", "value": name}}
	if name == "forced" {
		features[1] = map[string]string{"name": "forced-colors", "value": "active"}
	}
	p.call("Emulation.setEmulatedMedia", map[string]any{"features": features}, nil)
}

// size makes the page as large as a screen.
func (p *tab) size(width, height int) {
	p.Helper()
	p.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
}

// rulesOfAxe returns the script of the rules.
func rulesOfAxe(t *testing.T) string {
	t.Helper()
	needs(t, "npm")
	dir := t.TempDir()
	installNode(t, dir, "--ignore-scripts", axe)
	rules, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(rules)
}

// keepsRules fails if the page as it is breaks a rule of accessibility.
func (p *tab) keepsRules(rules, name string) {
	p.Helper()
	broken, err := p.run(rules + `;axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.html.slice(0, 150) + ' ' + n.failureSummary).join(' | ')).join('\n'))`)
	if err != nil {
		p.Fatal(err)
	}
	if string(broken) != `""` {
		p.Errorf("%s: got %s, want no rule of accessibility broken", name, broken)
	}
}

func TestTheViewsKeepTheRulesOfAccessibility(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, onStage)
	b := newBrowser(t, h.url())
	rules := rulesOfAxe(t)
	live := b.openLive()
	s := setStage(t, h)
	p := b.open("/")
	for _, v := range s.views() {
		p := p
		if v.name == "live" {
			p = live
		}
		p.show(v)
		for _, scheme := range []string{"light", "dark", "forced"} {
			p.scheme(scheme)
			p.keepsRules(rules, v.name+", "+scheme)
		}
		p.size(360, 700)
		if got := p.await(`'' + Math.max(0, document.documentElement.scrollWidth - innerWidth)`); got != "0" {
			t.Errorf("%s: got a page that is %s pixels wider than a narrow screen, want it to fit", v.name, got)
		}
		p.keepsRules(rules, v.name+", narrow")
		p.call("Emulation.clearDeviceMetricsOverride", nil, nil)
	}
	p.click("h1")
	p.key("?")
	p.await(`document.querySelector('#help').open`)
	p.keepsRules(rules, "the dialog of the keyboard")
}

// awaitAudit waits until the audit has that many entries: it drops those that come faster than they are
// written, and says so.
func (h *testHub) awaitAudit(t *testing.T, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for written := false; !written; {
		if err := h.service.Hub().Audit(ctx, core.Principal{ID: "root", Operator: true}, "", uint64(n), func([]byte) bool { written = true; return false }); err != nil {
			t.Fatal(err)
		}
		<-again.C
	}
}

// 10,000 tasks, thousands of events a second and a long answer do not make the page slow.
func TestTheConsoleStaysResponsive(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, func(c *config.Config) { c.Limits.FinishedTasks = 20000 })
	b := newBrowser(t, h.url())
	agent := h.joinAgent(t, "worker")
	const tasks = 10000
	user := h.service.Hub().Connect(corehub.Identity{Principal: core.Principal{ID: "alice", Operator: true}})
	t.Cleanup(func() { user.Close(nil) })
	for i := range tasks {
		if _, err := user.Open(core.Request{To: core.ToAgent("worker"), Content: "task " + strconv.Itoa(i)}, corehub.OpenOptions{Unwatched: true}); err != nil {
			t.Fatal(err)
		}
		agent.report(agent.nextTask(), core.Done{Text: "ok"})
		if i%500 == 499 {
			h.awaitAudit(t, i)
		}
	}
	p := b.open("/#/tasks")
	p.shows(".row .text", "task 9999")
	p.await(`(() => { const l = document.querySelector('.list'); l.scrollTop = l.scrollHeight; return document.querySelector('.state').textContent.startsWith('10,000 tasks.'); })()`)
	p.shows(".row .text", "task 0")
	if got, _ := strconv.Atoi(p.await(`'' + document.querySelectorAll('.row').length`)); got > 100 {
		t.Errorf("got %d rows in the document, want those that are seen", got)
	}

	task := givenTo(t, h, agent, "alice", "talk")
	p.visit("/#/live")
	p.shows(".state", "0 of 0 events shown")
	const frames = `(() => { window.painted = 0; window.slowest = 0; let last = performance.now(); const f = (now) => { window.painted++; window.slowest = Math.max(window.slowest, now - last); last = now; requestAnimationFrame(f); }; requestAnimationFrame(f); return true; })()`
	p.await(frames)
	const events = 30000
	for i := range events {
		agent.report(task, core.Text{Text: "piece " + strconv.Itoa(i) + "\n"})
	}
	p.shows(".row .text", "piece "+strconv.Itoa(events-1))
	other := givenTo(t, h, agent, "alice", "look")
	for i := range events {
		agent.report(other, core.ToolState{ID: strconv.Itoa(i % 10), State: core.ToolRunning})
	}
	agent.report(other, core.Done{})
	p.shows(".state", "older ones are no longer kept here")
	t.Logf("%s frames painted, the longest took %s ms", p.await(`'' + window.painted`), p.await(`'' + Math.round(window.slowest)`))
	p.visit("/#/tasks/" + string(task.ID()))
	p.shows(".part.text button", "more letters are not shown")
	agent.report(task, core.Done{})
	p.shows(".facts", "done")
}

// At 1,000 events a second the page paints at most 60 times a second, and uses a part of a core.
func TestTheLiveViewKeepsUpWithAThousandEventsASecond(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	b := newBrowser(t, h.url())
	agent := h.joinAgent(t, "worker")
	task := givenTo(t, h, agent, "alice", "talk")
	b.open("/#/hub").shows(".facts", "Running") // the browser has started
	p := b.open("/#/live")
	p.shows(".state", "0 of 0 events shown")
	paint := p.await(`performance.getEntriesByName('first-contentful-paint').length && '' + Math.round(performance.getEntriesByName('first-contentful-paint')[0].startTime)`)
	// The line of the state is written once for each repaint of the list.
	p.await(`(() => { window.repaints = 0; new MutationObserver(() => window.repaints++).observe(document.querySelector('.state'), {childList: true}); return true; })()`)
	p.await(sinceNow)
	before, began := b.seconds(), time.Now()
	const events, each = 3000, time.Millisecond
	pace := time.NewTicker(10 * each)
	defer pace.Stop()
	for i := range events {
		if i%10 == 0 {
			<-pace.C
		}
		if i%2 == 0 {
			agent.report(task, core.Text{Text: "piece " + strconv.Itoa(i) + " "})
		} else {
			agent.report(task, core.ToolCall{ID: strconv.Itoa(i), Name: "look", Input: "{}"})
		}
	}
	p.shows(".state", "3,000 of 3,000 events shown")
	took := time.Since(began).Seconds()
	repaints, _ := strconv.Atoi(p.await(`'' + window.repaints`))
	t.Logf("first paint after %s ms; %d repaints in %.1f s, in which the browser used %.1f s of the processor; %s", paint, repaints, took, b.seconds()-before, p.pauses())
	if limit := int(60*took) + 2; repaints > limit {
		t.Errorf("got %d repaints in %.1f s, want at most %d", repaints, took, limit)
	}
	agent.report(task, core.Done{})
}

// A task of 60 MiB is read whole; the page shows its beginning, says how much more there is, and
// still answers.
func TestTheConsoleReadsATaskOf60MiB(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	b := newBrowser(t, h.url())
	agent := h.joinAgent(t, "worker")
	task := givenTo(t, h, agent, "alice", "talk")
	piece := strings.Repeat("all work and no play\n", 1<<18/21)
	const pieces = 240
	for range pieces {
		agent.report(task, core.Text{Text: piece})
	}
	agent.report(task, core.Done{})
	began := time.Now()
	p := b.open("/#/tasks/" + string(task.ID()))
	p.shows(".facts", "done")
	p.shows(".part.text button", p.await(`(`+strconv.Itoa(pieces*len(piece))+` - 200000).toLocaleString('en')`)+" more letters are not shown")
	t.Logf("read within %.1f s", time.Since(began).Seconds())
	p.shows(".state", "events are listed without their bodies")
	p.click(".part.text button")
	p.await(`document.querySelector('.part.text .prose').textContent.length >= 400000`)
	p.click("h1")
	p.key("3")
	p.shows("tbody th", "worker")
}
