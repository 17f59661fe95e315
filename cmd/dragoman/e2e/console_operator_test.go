package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	corehub "github.com/dragoman-hub/dragoman/core/hub"
)

// broken is an agent of the settings that ends at once.
var broken = config.Agent{Name: "broken", Dialect: config.SpeaksNative, Process: config.Process{Command: []string{"sh", "-c", "echo no licence >&2; exit 3"}}}

// sinceNow has the page note how long it does not paint from now on, and the longest of its tasks above 50 ms.
const sinceNow = `(() => { window.slowest = window.busiest = 0; new PerformanceObserver((all) => { for (const e of all.getEntries()) window.busiest = Math.max(window.busiest, e.duration); }).observe({type: 'longtask'});
	let last = performance.now(); const f = (now) => { window.slowest = Math.max(window.slowest, now - last); last = now; requestAnimationFrame(f); }; requestAnimationFrame(f); return true; })()`

// setUp joins 200 agents, and asks some for 1,000 tasks.
func setUp(t *testing.T, h *testHub) {
	t.Helper()
	var agents []hubAgent
	for i := range 199 {
		agents = append(agents, h.joinAgent(t, core.AgentID(fmt.Sprintf("agent-%03d", i)), func(c *core.Card) {
			c.Name, c.Dialect, c.Capabilities = fmt.Sprint("Number ", i), []string{"native", "coven", "a2a"}[i%3], []string{"ui", fmt.Sprint("skill-", i)}
		}))
	}
	ann := h.service.Hub().Connect(corehub.Identity{Principal: core.Principal{ID: "ann", Authenticated: true}, Dialect: "rest"})
	t.Cleanup(func() { ann.Close(nil) })
	for i := range 1000 {
		a := agents[i%20]
		asked, err := ann.Open(core.Request{To: core.ToAgent(a.AgentID()), Content: fmt.Sprint("errand ", i), Thread: core.ThreadID(fmt.Sprint("day ", i%7))}, corehub.OpenOptions{Unwatched: true})
		if err != nil {
			t.Fatal(err)
		}
		var end core.Body = core.Done{Text: "ok"}
		if i%100 == 0 {
			end = core.Failed{Fault: core.NewFault(core.CodeUnreachable, "the shop of errand %d is closed", i)}
		}
		a.nextTask()
		a.report(asked, end)
		if i%500 == 499 {
			h.awaitAudit(t, i)
		}
	}
}

// pauses says how long the page was still since [sinceNow].
func (p *tab) pauses() string {
	p.Helper()
	return p.await("'it did not paint for ' + Math.round(window.slowest) + ' ms at most, ' + (window.busiest ? 'and its longest task took ' + Math.round(window.busiest) + ' ms' : 'and no task took 50 ms')")
}

// enter writes into a field of the page letter by letter, and says how long the page was still meanwhile.
func (e element) enter(text string) string {
	e.Helper()
	e.click()
	e.await(sinceNow)
	for _, letter := range text {
		e.write(string(letter))
	}
	e.await(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
	return e.pauses()
}

func TestAnOperatorFindsAgentsAndTasksAmongMany(t *testing.T) {
	t.Parallel()
	h := newLoggingHub(t, slog.DiscardHandler, func(c *config.Config) { c.Agents = config.Agents{broken} })
	b := newBrowser(t, h.url())
	setUp(t, h)
	p := b.open("/#/agents")
	p.shows(".state", "200 agents are here.")
	// What failed is first, with why.
	p.await(`document.querySelector('.row').textContent.includes('broken') && /failed|restarting/.test(document.querySelector('.row .is').textContent)`)
	p.shows(".row[aria-posinset='1'] .why", "exit status 3")
	if got := p.byRole("link", "Talk to agent-007").get(`function() { return this.getAttribute('href'); }`); got != "#/new?to=agent-007" {
		t.Errorf("got a link to %s, want one that begins a conversation", got)
	}
	t.Logf("200 agents: while letters were typed: %s", p.byRole("searchbox", "Find").enter("skill-17"))
	p.shows(".state", "11 of 200 agents are here.") // 17, 170 to 179
	p.await(`location.hash === '#/agents?text=skill-17'`)
	p.visit("/#/agents?text=coven&order=name")
	p.shows(".state", "66 of 200 agents are here.")
	p.shows(".row[aria-posinset='1'] .agent", "agent-001")
	p.byRole("combobox", "State").get(`function() { this.value = 'draining'; this.dispatchEvent(new Event('input')); }`)
	p.shows(".empty", "None matches.")
	p.await(`location.hash === '#/agents?text=coven&state=draining&order=name'`)
	p.byRole("link", "Show all agents").click()
	p.shows(".state", "200 agents are here.")

	p.visit("/#/tasks?state=failed")
	p.shows(".state", "10 tasks.")
	p.shows(".row .why", "unreachable: the shop of errand 900 is closed")
	p.visit("/#/tasks")
	p.shows(".state", "200 tasks, and older ones further down.")
	t.Logf("1,000 tasks: while letters were typed: %s", p.byRole("searchbox", "Find").enter("errand 77"))
	p.shows(".state", "11 tasks.")
	p.await(`location.hash === '#/tasks?text=errand+77'`)
	p.visit("/#/tasks?thread=day+3&agent=agent-003")
	p.shows(".state", "8 tasks.") // 3 of 140
	p.byRole("searchbox", "Asked by").enter("nobody")
	p.shows(".empty", "None matches.")
	p.byRole("link", "Show all tasks").click()
	p.shows(".state", "200 tasks")
}

// The words of a task are in one row, and those of another beside it in another. A pause holds them.
func TestTheWordsOfATaskAreOneRowOfLive(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	b := newBrowser(t, h.url())
	live, found := b.openLive(), b.open("/#/live?text=moon")
	found.shows(".empty", "What happens from now on comes here.")
	agent := h.joinAgent(t, "worker")
	first, second := givenTo(t, h, agent, "alice", "talk"), givenTo(t, h, agent, "alice", "sing")
	agent.report(first, core.Thinking{Text: "what to "}, core.Thinking{Text: "say?"})
	for i := range 400 {
		agent.report(first, core.Text{Text: fmt.Sprint("word", i, " ")})
		agent.report(second, core.Text{Text: fmt.Sprint("la", i, " ")})
	}
	agent.report(first, core.Text{Text: "the moo"}, core.Text{Text: "n\n"})
	const rows = `[...document.querySelectorAll('.row .kind')].map((e) => e.textContent).sort().join()`
	live.await(rows + ` === 'assigned,assigned,opened,opened,text,text,thinking'`)
	live.shows(".row .text", "what to say?")
	live.shows(".row .text", "word398 word399 the moon ")
	live.shows(".row .text", "la398 la399 ")
	live.shows(".state", "808 of 808 events shown.")
	found.await(rows + ` === 'text'`) // what is looked for came in two events
	found.shows(".state", "402 of 808 events shown.")
	live.await(`(() => { const r = document.querySelector('.row .grows').getBoundingClientRect(), last = [...document.querySelectorAll('.row .grows')].find((e) => e.textContent.includes('moon')).firstChild.getBoundingClientRect(); return last.right <= r.right + 1; })()`) // its end is in sight

	live.click("h1")
	live.key("p")
	live.shows(".state", "Paused")
	agent.report(first, core.Text{Text: "and the stars"})
	live.shows(".state", "Paused, 1 more have come")
	live.await(`![...document.querySelectorAll('.row .text')].some((e) => e.textContent.includes('stars'))`)
	live.key("p")
	live.shows(".row .text", "and the stars")
	agent.report(first, core.ToolCall{ID: "1", Name: "look", Input: "{}"}, core.ToolResult{ID: "1"}, core.Text{Text: "another row"}, core.Done{})
	live.await(rows + ` === 'assigned,assigned,done,opened,opened,text,text,text,text,thinking,tool call,tool result'`)
	agent.report(second, core.Done{})
}

// The audit has no content: the page reads the tool and its input from the task.
func TestWhatWasDecidedBeforeIsShownWithItsInput(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "alice", "root") })
	b := newBrowser(t, h.url())
	agent := h.joinAgent(t, "worker")
	asked := givenTo(t, h, agent, "alice", "tidy up")
	root := h.service.Hub().Connect(corehub.Identity{Principal: core.Principal{ID: "root", Operator: true, Authenticated: true}})
	t.Cleanup(func() { root.Close(nil) })
	long := `{"path":"` + strings.Repeat("a/very/long/way/", 20) + `end"}`
	for i, input := range []string{`{"path":"/tmp/` + "\u202e" + `"}`, long} { // one call with two inputs
		agent.report(asked, core.ToolCall{ID: "k", Name: "remove", Input: input}, core.ApprovalRequested{ID: "k", Name: "remove", Input: input})
		sum := sha256.Sum256([]byte(input))
		if err := root.Decide(t.Context(), asked.ID(), core.ApprovalDecided{ID: "k", Approved: i == 1, By: "root", InputSHA256: hex.EncodeToString(sum[:])}); err != nil {
			t.Fatal(err)
		}
		agent.decision()
	}
	agent.report(asked, core.Done{})
	p := b.open("/#/waiting")
	p.byRole("textbox", "Token of the hub, or a JWT").click()
	p.write("root")
	p.key("Enter")
	p.shows(".empty", "needs your approval")
	p.await(`(document.querySelector(".history").open = true)`) // what it stands below may still come
	const row = `[...document.querySelectorAll('.history tbody tr')][%d].cells`
	for n, want := range []struct{ said, begins, whole string }{{"approved", `{"path":"a/very`, "way/end"}, {"denied", `{"path":"/tmp/⟨U+202E⟩"}`, "⟨U+202E⟩"}} {
		cells := fmt.Sprintf(row, n)
		p.await(cells + `[0].textContent === ` + string(plainJSON(want.said)) + ` && ` + cells + `[1].querySelector('code')?.textContent === 'remove' && ` + cells + `[2].textContent === 'root'`)
		p.await(cells + `[1].querySelector('summary').textContent.startsWith(` + string(plainJSON(want.begins)) + `)`)
		p.await(`!` + cells + `[1].querySelector('details').open && (` + cells + `[1].querySelector('summary').click(), true)`)
		p.await(cells + `[1].querySelector('pre').checkVisibility() && ` + cells + `[1].querySelector('pre').textContent.includes(` + string(plainJSON(want.whole)) + `)`)
	}
}

func TestEveryEmptyViewSaysTheNextStep(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	b := newBrowser(t, h.url())
	p := b.open("/#/agents")
	for address, next := range map[string]string{
		"agents": "dragoman add claude", "tasks": "Ask an agent", "live": "Ask an agent", "usage": "usage.prices", "waiting": "needs your approval",
	} {
		p.visit("/#/" + address)
		p.await(`location.hash === '#/` + address + `' && [...document.querySelectorAll('.empty')].some((e) => e.checkVisibility() && e.textContent.includes(` + string(plainJSON(next)) + `))`)
		if address != "agents" {
			p.await(`document.querySelector('.empty a[href="#/new"]')`)
		}
	}
}

func TestAListOnANarrowScreenShowsWhoWhatAndState(t *testing.T) {
	t.Parallel()
	h := newLoggingHub(t, slog.DiscardHandler, func(c *config.Config) {
		c.Agents = config.Agents{broken}
		c.Budgets = config.Budgets{{Agent: "worker", Cost: 2, Per: "day"}}
		c.Usage.Prices = config.Prices{{Model: "large", Input: 1, Output: 10}}
	})
	b := newBrowser(t, h.url())
	live := b.openLive()
	agent := h.joinAgent(t, "worker")
	asked := givenTo(t, h, agent, "alice", "dig a hole in the garden behind the house")
	agent.report(asked, core.ToolCall{ID: "1", Name: "remove", Input: `{"what":"stones"}`}, core.ApprovalRequested{ID: "1", Name: "remove", Input: `{"what":"stones"}`})
	root := h.service.Hub().Connect(corehub.Identity{Principal: core.Principal{ID: "root", Operator: true, Authenticated: true}})
	t.Cleanup(func() { root.Close(nil) })
	if err := root.Decide(t.Context(), asked.ID(), core.ApprovalDecided{ID: "1", By: "root"}); err != nil {
		t.Fatal(err)
	}
	agent.decision()
	agent.report(asked, core.Usage{Input: 100000, Output: 10000, Model: "large"}, core.Failed{Fault: core.NewFault(core.CodeUnreachable, "no spade")})
	second := givenTo(t, h, agent, "alice", "look")
	agent.report(second, core.ToolCall{ID: "2", Name: "paint", Input: `{"what":"door"}`}, core.ApprovalRequested{ID: "2", Name: "paint", Input: `{"what":"door"}`})
	for _, v := range []struct {
		view, row string
		want      []string
	}{
		{"agents", "tbody tr", []string{"broken", "exit status 3", "Talk"}},
		{"tasks?state=failed", ".row", []string{"alice → worker", "dig a", "failed", "unreachable: no"}},
		{"live", ".row", []string{"opened", "alice ask worker"}},
		{"waiting", ".card", []string{"worker wants to call paint", `"door"`, "Approve"}},
		{"waiting", ".history tbody tr", []string{"denied", "remove", "root"}},
		{"usage", "tbody tr", []string{"worker", "0.20 USD", "100,000"}},
		{"usage", ".scroll:nth-of-type(2) tbody tr", []string{"agent worker", "0.20 USD", "2.00 USD a day"}},
		{"hub", ".facts div:nth-child(4)", []string{"Running", "1"}},
	} {
		p := live
		p.size(375, 812)
		if v.view != "live" {
			p = b.open("/#/" + v.view)
			p.size(375, 812)
		}
		if strings.HasPrefix(v.row, ".history") {
			p.await(`(document.querySelector('.history').open = true)`)
		}
		for _, want := range v.want {
			// The words are on the screen: no part of them is cut off or beside it.
			p.await(fmt.Sprintf(`(() => { const row = document.querySelector(%s), words = %s; row.scrollIntoView({block: 'nearest'});
				for (const walk = document.createTreeWalker(row, NodeFilter.SHOW_TEXT); walk.nextNode();) { const text = walk.currentNode.parentElement; if (!text.checkVisibility()) continue;
					const range = document.createRange(), of = text.closest('th, td, .row > *, h2, dd, dt, pre, button, a') ?? text; if (!of.textContent.includes(words)) continue;
					const first = document.createTreeWalker(of, NodeFilter.SHOW_TEXT).nextNode(); range.setStart(first, 0); range.setEnd(first, Math.min(first.length, words.length));
					const at = range.getBoundingClientRect(), box = of.getBoundingClientRect();
					if (at.width && at.left >= 0 && at.right <= Math.min(innerWidth, box.right + 1)) return true; }
				return false; })()`, plainJSON(v.row), plainJSON(want)))
		}
		if got := p.await(`'' + Math.max(0, document.documentElement.scrollWidth - innerWidth)`); got != "0" {
			t.Errorf("%s: got a page that is %s pixels wider than the screen, want it to fit", v.view, got)
		}
		p.picture("narrow-" + strings.SplitN(v.view, "?", 2)[0] + strconv.Itoa(len(v.row)))
	}
	agent.report(second, core.Done{})
}

// While nobody looks at the page the browser tells what waits: who and which tool, and nothing of the input.
func TestTheBrowserTellsWhatWaits(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	b := newBrowser(t, h.url())
	agent := h.joinAgent(t, "worker")
	asked := givenTo(t, h, agent, "alice", "tidy up")
	p := b.open("/#/waiting")
	p.shows(".state", "Nothing waits for you.")
	// A browser without a window has nobody to ask: the permission is given once the button has asked for it.
	p.await(`(() => { window.asked = 0; Notification.requestPermission = async () => { window.asked++; return 'granted'; }; return true; })()`)
	p.byRole("button", "Tell me here when something waits").click()
	p.await(`window.asked === 1 && [...document.querySelectorAll('button')].every((b) => b.hidden || !b.textContent.startsWith('Tell me'))`)
	p.call("Browser.grantPermissions", map[string]any{"origin": h.url(), "permissions": []string{"notifications"}}, nil)
	p.await(`(async () => { const real = window.Notification; window.told = []; window.Notification = class extends real { constructor(title, o) { super(title, o); window.told.push(this); this.addEventListener('show', () => { this.wasShown = true; }); } }; return true; })()`)

	agent.report(asked, core.ToolCall{ID: "1", Name: "look", Input: "{}"}, core.ApprovalRequested{ID: "1", Name: "look", Input: "{}"})
	p.shows(".card h2", "look")
	if got := p.await(`document.hidden + ' ' + window.told.length`); got != "false 0" {
		t.Errorf("got %s, want nothing told while the page is seen", got)
	}
	other := b.open("/#/hub")
	other.call("Page.bringToFront", nil, nil)
	p.await(`document.hidden`)
	agent.report(asked, core.ToolCall{ID: "2", Name: "remove", Input: `{"path":"secret"}`}, core.ApprovalRequested{ID: "2", Name: "remove", Input: `{"path":"secret"}`})
	p.await(`window.told.length === 1 && window.told[0].wasShown`)
	if got := p.await(`window.told[0].title + ': ' + window.told[0].body`); got != "An approval is waiting: worker wants to call remove" {
		t.Errorf("got %q, want who and which tool", got)
	}
	p.visit("/#/hub")
	p.shows(".facts", "Running")
	p.await(`(window.told[0].onclick(new Event('click')), true)`)
	p.call("Page.bringToFront", nil, nil)
	p.await(`document.activeElement.matches('.card') && document.activeElement.textContent.includes('remove') && location.hash === '#/waiting'`)

	// After it was asked for, whatever the answer, it is not offered again.
	p.reload()
	p.shows(".card h2", "look")
	p.await(`[...document.querySelectorAll('button')].every((b) => b.hidden || !b.textContent.startsWith('Tell me'))`)
	agent.report(asked, core.Done{})
}

// Money stands beside tokens, and what has no price is not counted as nothing.
func TestUsageAndBudgetsAreInMoneyToo(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, func(c *config.Config) {
		c.Usage.Prices = config.Prices{{Model: "large", Input: 1, Output: 10}}
		c.Budgets = config.Budgets{{Agent: "worker", Cost: 2, Per: "day"}, {Requester: "alice", Tokens: 5000, Per: "total"}}
	})
	b := newBrowser(t, h.url())
	agent := h.joinAgent(t, "worker")
	asked := givenTo(t, h, agent, "alice", "dig")
	agent.report(asked, core.Usage{Input: 1000, Output: 100, Model: "large"}, core.Usage{Input: 10, Output: 10}, core.Done{})
	p := b.open("/#/usage")
	p.await(`[...document.querySelectorAll('tbody tr')].some((r) => r.cells[0].textContent === 'worker' && r.cells[1].textContent === '0.002 USD, 1 of 2 reports without a price')`)
	p.await(`[...document.querySelectorAll('tbody tr')].some((r) => r.cells[0].textContent === 'agent worker' && r.cells[1].textContent === '0.002 USD' && r.cells[2].textContent === '2.00 USD a day')`)
	p.await(`[...document.querySelectorAll('tbody tr')].some((r) => r.cells[0].textContent === 'what is asked by alice' && r.cells[1].textContent === '1,120 tokens' && r.cells[2].textContent === '5,000 tokens in total' && r.cells[4].textContent === 'never')`)
	p.byRole("combobox", "Tokens and money by").get(`function() { this.value = 'thread'; this.dispatchEvent(new Event('change')); }`)
	p.shows("th", "conversation")
}
