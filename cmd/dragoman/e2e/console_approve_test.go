package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
)

// A decision is on the request, whatever the call before it said, and stands on its own input for ever.
func TestADecisionIsOnWhatThePageShows(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	b := newBrowser(t, h.url())
	agent := h.joinAgent(t, "worker")
	asked := givenTo(t, h, agent, "alice", "look around")
	const harmless, evil = `{"path":"/tmp"}`, `{"path":"/etc","n":9007199254740993,"cmd":"ls","x":1e400}`
	agent.report(asked, core.ToolCall{ID: "1", Name: "ls", Input: harmless}, core.ApprovalRequested{ID: "1", Name: "rm", Input: evil})
	p := b.open("/#/tasks/" + string(asked.ID()))
	p.shows(".turn .card h2", "worker wants to call rm")
	// Every letter of the input is there, but for white space between them.
	if got := p.await(`document.querySelector('.turn .whole-input pre').textContent.replace(/\s/g, '')`); got != evil {
		t.Errorf("got %s to decide on, want %s", got, evil)
	}
	p.click(`.turn .card button[data-do="approve"]:not([disabled])`)
	sum := sha256.Sum256([]byte(evil))
	if d := agent.decision(); !d.Approved || d.InputSHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("got %+v, want the approval of what was shown", d)
	}
	p.shows(".decided summary", "Approved by local rm "+`{"path":"/etc"`)

	// The same call asks for something else of the same length: what was approved stays what it was.
	other := strings.Replace(evil, "/etc", "/usr", 1)
	agent.report(asked, core.ApprovalRequested{ID: "1", Name: "rm", Input: other})
	p.shows(".turn .card:not(.gone) .whole-input pre", "/usr")
	if got := p.await(`[...document.querySelectorAll('.decided')].map((e) => e.querySelector('pre').textContent.includes('/etc') && !e.textContent.includes('/usr')).join()`); got != "true" {
		t.Errorf("got %s, want the one decision on its own input", got)
	}
	p.click(`.turn .card:not(.gone) button[data-do="deny"]`)
	if d := agent.decision(); d.Approved {
		t.Errorf("got %+v, want it denied", d)
	}

	// Another call with the id of one that has ended is another part, without a decision.
	agent.report(asked, core.ToolResult{ID: "1", Output: "done"}, core.ToolCall{ID: "1", Name: "reboot", Input: `{"now":true}`})
	p.shows(".part.tool:last-child .who", "reboot")
	if got := p.await(`document.querySelectorAll('.part.tool').length + ' ' + document.querySelectorAll('.part.tool:last-child .decided').length`); got != "2 0" {
		t.Errorf("got %s parts and decisions on the last, want 2 and 0", got)
	}
	agent.report(asked, core.Done{})
}

// What is long must be shown whole before it can be approved, by hand and by key.
func TestHalfAnInputIsNotApproved(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	b := newBrowser(t, h.url())
	agent := h.joinAgent(t, "worker")
	asked := givenTo(t, h, agent, "alice", "write")
	long := `{"text":"` + strings.Repeat("all is well. ", 3000) + `","then":"rm -rf /"}`
	agent.report(asked, core.ToolCall{ID: "1", Name: "write", Input: long}, core.ApprovalRequested{ID: "1", Name: "write", Input: long})
	for _, view := range []struct{ address, card string }{{"/#/tasks/" + string(asked.ID()), ".turn .card"}, {"/#/waiting", ".cards .card"}} {
		p := b.open(view.address)
		p.shows(view.card+` button[data-do="whole"]`, "more letters: show all")
		if got := p.await(`'approve is ' + (document.querySelector('` + view.card + ` [data-do="approve"]').disabled ? 'off' : 'on') + ', deny is ' + (document.querySelector('` + view.card + ` [data-do="deny"]').disabled ? 'off' : 'on')`); got != "approve is off, deny is on" {
			t.Errorf("%s: got %s before all was shown", view.address, got)
		}
		p.click("h1")
		p.key("j", "a") // nothing happens
		p.click(view.card + ` button[data-do="whole"]`)
		p.await(`document.querySelector('` + view.card + ` pre').textContent.includes('rm -rf /')`)
		// It is longer than the screen: who jumps to its end has not seen it.
		const settled = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(true), 50))))`
		p.await(`(scrollTo(0, document.body.scrollHeight), ` + settled + `)`)
		off := `document.querySelector('` + view.card + ` [data-do="approve"]').disabled`
		if got := p.await(`'' + ` + off); got != "true" {
			t.Errorf("%s: got it enabled at the end of what was not seen", view.address)
		}
		p.await(`(scrollTo(0, 0), ` + settled + `)`)
		p.await(`(scrollBy(0, innerHeight / 3), ` + settled + `.then(() => !` + off + `))`)
		if view.card == ".cards .card" {
			p.click("h1")
			p.key("j", "a")
			if d := agent.decision(); !d.Approved {
				t.Errorf("got %+v, want it approved by key", d)
			}
		}
	}
	agent.report(asked, core.Done{})
}

// A hub that goes away in the middle of an answer, as behind a proxy, does not end what the page reads.
func TestThePageReadsOnAfterAnAnswerThatWasCut(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	to, err := url.Parse(h.url())
	if err != nil {
		t.Fatal(err)
	}
	var cut atomic.Int64
	cut.Store(3)
	pass := httputil.NewSingleHostReverseProxy(to)
	pass.FlushInterval = -1
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/approvals" && cut.Add(-1) >= 0 {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"approvals":[`)
			panic(http.ErrAbortHandler)
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	b := newBrowser(t, proxy.URL)
	agent := h.joinAgent(t, "worker")
	asked := givenTo(t, h, agent, "alice", "go on")
	agent.report(asked, core.ToolCall{ID: "1", Name: "walk", Input: "{}"}, core.ApprovalRequested{ID: "1", Name: "walk", Input: "{}"})
	p := b.open("/#/waiting")
	p.shows(".card h2", "worker wants to call walk")
	if cut.Load() >= 0 {
		t.Error("got no answer that was cut, want three")
	}
	agent.report(asked, core.Done{})
}

// A page that is being read is not rebuilt under its reader.
func TestThePageStaysUnderItsReader(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, func(c *config.Config) { c.Limits.FinishedTasks = 100 })
	b := newBrowser(t, h.url())
	agent := h.joinAgent(t, "worker")
	asked := givenTo(t, h, agent, "alice", "one")
	agent.report(asked, core.Text{Text: "begun before anybody looked"})
	p := b.open("/#/agents?order=name")
	p.shows("tbody", "1 of 8")
	p.await(`(() => { window.row = document.querySelector('tbody tr'); row.querySelector('a').focus(); return document.activeElement.textContent === 'worker'; })()`)
	h.joinAgent(t, "another") // it stands above
	second := givenTo(t, h, agent, "alice", "two")
	p.shows("tbody", "2 of 8")
	p.shows("tbody", "another")
	if got := p.await(`'' + (document.activeElement === window.row.querySelector('a') && document.querySelectorAll('tbody tr')[1] === window.row)`); got != "true" {
		t.Errorf("got %s, want the same row with the focus where the reader was", got)
	}
	p.visit("/#/hub")
	p.click("details#limits summary")
	p.shows("#limits[open] table", "queue length")
	p.await(`(() => { window.limits = document.querySelector('#limits'); return true; })()`)
	agent.report(second, core.Done{})
	p.shows(".facts", "Running1")
	if got := p.await(`'' + (window.limits === document.querySelector('#limits') && window.limits.open)`); got != "true" {
		t.Errorf("got %s, want what was open still open", got)
	}

	// Live knows whose the tasks are that ran before.
	live := b.open("/#/live?agent=worker")
	live.shows(".state", "0 of 0 events shown")
	agent.report(asked, core.Text{Text: "said while somebody looked"})
	live.shows(".row .text", "said while somebody looked")
	live.shows(".row .agent", "worker")
	agent.report(asked, core.Done{})
}

// Cards stay where they are while a hand is on them.
func TestNoCardMovesUnderAHand(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	b := newBrowser(t, h.url())
	agent := h.joinAgent(t, "worker")
	asked := givenTo(t, h, agent, "alice", "two things")
	for i := range 2 {
		id := fmt.Sprint("k", i)
		agent.report(asked, core.ToolCall{ID: id, Name: id, Input: "{}"}, core.ApprovalRequested{ID: id, Name: id, Input: "{}"})
	}
	p := b.open("/#/waiting")
	p.shows(".card:nth-child(2) h2", "k1")
	p.await(`(() => { const now = Date.now; window.later = 0; Date.now = () => now() + window.later; return true; })()`)
	p.call("Input.dispatchMouseEvent", map[string]any{"type": "mouseMoved", "x": 5, "y": 5}, nil)
	p.click(`.card [data-do="approve"]:not([disabled])`)
	if d := agent.decision(); d.ID != "k0" {
		t.Errorf("got %+v, want the first", d)
	}
	p.shows(".card.gone .note", "You approved it.")
	p.await(`(() => { window.later = 60000; window.ticks = 0; new MutationObserver(() => window.ticks++).observe(document.querySelector('.card:not(.gone) dl'), {childList: true, subtree: true, characterData: true}); return true; })()`)
	p.await(`window.ticks > 2`) // the clock of the cards has gone on
	p.shows(".card.gone h2", "k0")
	p.call("Input.dispatchMouseEvent", map[string]any{"type": "mouseMoved", "x": 5, "y": 5}, nil)
	p.await(`(document.querySelector('h1').click(), document.activeElement.blur(), true)`)
	p.await(`!document.querySelector('.card.gone')`)
	p.shows(".card h2", "k1")
	agent.report(asked, core.Done{})
}
