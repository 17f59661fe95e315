package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	corehub "github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// hostile is markup, a script and letters that hide: all of it must be seen as it is written.
const hostile = `<img src=x onerror="document.title='taken'"><script>alert(1)</script>`

// givenTo opens a task of a user at an agent that joined, and returns it where the agent has it.
func givenTo(t *testing.T, h *testHub, agent hubAgent, who, content string) *task.Task {
	t.Helper()
	s := h.service.Hub().Connect(corehub.Identity{Principal: core.Principal{ID: who, Authenticated: true}})
	t.Cleanup(func() { s.Close(nil) })
	if _, err := s.Open(core.Request{To: core.ToAgent("worker"), Content: content}, corehub.OpenOptions{Unwatched: true}); err != nil {
		t.Fatal(err)
	}
	return agent.nextTask()
}

// decision waits for what was decided at the agent.
func (w hubAgent) decision() core.ApprovalDecided {
	w.Helper()
	b := w.next(func(b corehub.Batch) bool { return has[core.ApprovalDecided](b) })
	for _, e := range b.Events {
		if d, ok := e.Body.(core.ApprovalDecided); ok {
			return d
		}
	}
	return core.ApprovalDecided{}
}

// TestAPersonDecidesOnTheConsole is the first slice of the console, on a hub with tokens.
func TestAPersonDecidesOnTheConsole(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "alice", "root") })
	b := newBrowser(t, h.url())
	agent := h.joinAgent(t, "worker")
	first := givenTo(t, h, agent, "alice", "tidy up "+hostile)
	agent.report(first, core.Accepted{}, core.Text{Text: "I shall " + hostile}, core.ToolCall{ID: "k1", Name: "remove", Input: `{"path":"` + "/a\u202e" + `"}`},
		core.ApprovalRequested{ID: "k1", Name: "remove", Input: `{"path":"` + "/a\u202e" + `"}`})

	p := b.open("/#/waiting")
	p.await(`document.querySelector('#login').open`)
	p.click("#token")
	p.write("root")
	p.key("Enter")
	p.shows(".card h2", "worker wants to call remove")
	p.shows(".card", hostile)
	p.shows(".card pre", "/a⟨U+202E⟩")
	p.await(`document.title.startsWith('(1) Waiting')`)

	p.click(`.card button[data-do="approve"]:not([disabled])`)
	if d := agent.decision(); !d.Approved || d.By != "root" || d.InputSHA256 == "" {
		t.Errorf("got %+v, want it approved by root with the checksum of its input", d)
	}
	p.shows(".note", "You approved it.")
	p.await(`document.title.startsWith('Waiting')`)

	agent.report(first, core.ToolCall{ID: "k2", Name: "reboot", Input: "{}"}, core.ApprovalRequested{ID: "k2", Name: "reboot", Input: "{}"})
	p.shows(".card:not(.gone) h2", "reboot")
	p.click("h1")
	p.key("j", "d")
	if d := agent.decision(); d.Approved || d.ID != "k2" || d.By != "root" {
		t.Errorf("got %+v, want k2 denied by root", d)
	}

	// Somebody else is faster: the card says so.
	agent.report(first, core.ToolCall{ID: "k3", Name: "sell", Input: "{}"}, core.ApprovalRequested{ID: "k3", Name: "sell", Input: "{}"})
	p.shows(".card:not(.gone) h2", "sell")
	s := h.service.Hub().Connect(corehub.Identity{Principal: core.Principal{ID: "other", Operator: true, Authenticated: true}})
	defer s.Close(nil)
	if err := s.Decide(t.Context(), first.ID(), core.ApprovalDecided{ID: "k3", By: "other"}); err != nil {
		t.Fatal(err)
	}
	agent.decision()
	p.shows(".card.gone .note", "Decided elsewhere: denied k3 by other")
	p.click(".history summary")
	for _, d := range []struct{ said, tool, by string }{{"approved", "remove", "root"}, {"denied", "reboot", "root"}, {"denied", "sell", "other"}} {
		p.await(fmt.Sprintf(`[...document.querySelectorAll('.history tbody tr')].some((r) => r.cells[0].textContent === %s && r.cells[1].querySelector('code')?.textContent === %s && r.cells[2].textContent === %s)`,
			plainJSON(d.said), plainJSON(d.tool), plainJSON(d.by)))
	}

	// What is put off is hidden and waits on; another input of it is not put off.
	agent.report(first, core.ToolCall{ID: "k4", Name: "paint", Input: "{}"}, core.ApprovalRequested{ID: "k4", Name: "paint", Input: "{}"})
	p.shows(".card:not(.gone) h2", "paint")
	p.click(`.card:not(.gone) button[data-do="later"]`)
	p.shows(".state", "Nothing else waits for you.")
	p.await(`!document.title.startsWith('(') && ![...document.querySelectorAll('.card:not(.gone) h2')].some((e) => e.textContent.includes('paint'))`)
	p.reload()
	p.shows("main > .view > button", "1 put off: show it again")
	agent.report(first, core.ApprovalRequested{ID: "k4", Name: "paint", Input: `{"colour":"red"}`})
	p.shows(".card:not(.gone) pre", "red")
	p.click(`.card button[data-do="later"]`)
	p.click("main > .view > button")
	p.shows(".card:not(.gone) pre", "red")
	p.click(`.card button[data-do="deny"]`)
	if d := agent.decision(); d.Approved || d.ID != "k4" {
		t.Errorf("got %+v, want k4 denied, once it was put off no more", d)
	}

	p.key("3")
	p.shows("tbody th", "worker")
	p.shows("tbody", "1 of 8")

	p.visit("/#/tasks/" + string(first.ID()))
	p.shows(".part.opened", hostile)
	p.shows(".part.text", hostile)
	p.shows(".part.tool", "Approved by root")
	agent.report(first, core.Text{Text: "and now it is done"}, core.Done{})
	p.shows(".part.text", "and now it is done")
	p.shows(".facts", "done")
	for tab, selector := range map[string]string{"timeline": ".waterfall svg", "events": ".row .kind", "frames": "section .state"} {
		p.visit("/#/tasks/" + string(first.ID()) + "/" + tab)
		p.await(`location.hash.endsWith('/` + tab + `')`)
		p.reload()
		p.await(`document.querySelector('nav.tabs a[aria-current]').textContent === '` + tab + `'`)
		p.await(`!/^(Reading.*)?$/.test(document.querySelector('main ` + selector + `').textContent)`)
	}
	if got := p.await(`document.querySelectorAll('main img, main script').length === 0 && !document.title.includes('taken') ? 'text' : 'markup'`); got != "text" {
		t.Error("got hostile text as markup, want text")
	}
}

// TestTheLiveViewShowsEventsAsTheyCome filters, pauses and reloads the live view.
func TestTheLiveViewShowsEventsAsTheyCome(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	b := newBrowser(t, h.url())
	agent := h.joinAgent(t, "worker")
	p := b.open("/#/live?kind=text")
	p.shows(".state", "0 of 0 events shown")
	first := givenTo(t, h, agent, "alice", "talk")
	agent.report(first, core.Text{Text: "one " + hostile})
	p.shows(".row .text", "one "+hostile)
	p.await(`[...document.querySelectorAll('.row .kind')].every((e) => e.textContent === 'text')`)
	p.click("h1")
	p.key("p")
	agent.report(first, core.Text{Text: "two"})
	p.shows(".state", "Paused, 1 more have come")
	p.await(`![...document.querySelectorAll('.row .text')].some((e) => e.textContent.includes('two'))`)
	p.key("p")
	p.shows(".row .text", "two")
	p.reload()
	p.await(`document.querySelector('.filters select').value === 'text'`)
	agent.report(first, core.Done{})
}

// TestWhoMayLessSeesLess opens every view as a principal that no rule mentions.
func TestWhoMayLessSeesLess(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, ruled(t, "- {who: alice, may: [see, ask], to: \"*\"}\n"))
	b := newBrowser(t, h.url())
	h.joinAgent(t, "worker")
	p := b.open("/#/waiting")
	p.await(`document.querySelector('#login').open`)
	p.click("#token")
	p.write("wrong")
	p.key("Enter")
	p.await(`document.querySelector('#login').open && document.querySelector('#login-why').textContent`)
	p.click("#token")
	p.write("bob")
	p.key("Enter")
	for _, view := range []struct{ key, selector, text string }{
		{"1", ".side .state", "No conversation yet."}, {"2", ".state", "Nothing waits for you."}, {"3", ".state", "No agent is here that you may see."},
		{"4", ".state", "0 tasks."}, {"5", ".state", "lacks the right operate. See the tasks that you may read"}, {"6", ".state", "lacks the right operate"}, {"7", "main", "for those who may operate it"},
	} {
		p.click("h1")
		p.key(view.key)
		p.shows(view.selector, view.text)
	}
}

// A JWT is a credential like a token of the hub. When it expires the page asks again.
func TestThePageAsksAgainWhenAJWTExpires(t *testing.T) {
	t.Parallel()
	idp := newIdentityProvider(t)
	h := newTestHub(t, func(c *config.Config) {
		c.Auth.JWT = config.Issuers{{Issuer: idp.url, Audience: "dragoman", JWKS: idp.url + "/keys"}}
	})
	b := newBrowser(t, h.url())
	p := b.open("/#/waiting")
	enter := func(life time.Duration) {
		p.await(`document.querySelector('#login').open`)
		p.click("#token")
		p.write(idp.token(t, jwt.SigningMethodES256, idp.ecdsa, "ec", idp.url, "emma", life))
		p.key("Enter")
		p.shows(".state", "Nothing waits for you.")
	}
	enter(6 * time.Second)
	p.shows("#login-why", "expired")
	enter(time.Hour)
	p.click("h1")
	p.key("7")
	p.shows(".facts", "Running")
}

// Without a credential the page and its files are all that is there, and none of it for the page of
// another site.
func TestTheConsoleAloneNeedsNoCredential(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "root") })
	for path, want := range map[string]int{
		"/": 200, "/console/": 200, "/console/app.js": 200, "/console/none": 404, "/console": 307, "/v1/hub": 401, "/metrics": 401, "/none": 401, "//": 401, "/console/../v1/hub": 404,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: got %d, want %d", path, resp.StatusCode, want)
		}
	}
	// A link on another site opens the page, and nothing but the page.
	for path, want := range map[string]int{"/": 200, "/console/": 200, "/console": 307, "/v1/hub": 403, "/metrics": 403, "/healthz": 403} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"} {
			r.Header.Set(name, value)
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s by a link: got %d, want %d", path, resp.StatusCode, want)
		}
	}
	for header, value := range map[string]string{"Host": "evil.example", "Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url()+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(header, value)
		if header == "Host" {
			r.Host = value
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode < 400 || strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
			t.Errorf("%s %s: got %d, want it refused", header, value, resp.StatusCode)
		}
	}
}
