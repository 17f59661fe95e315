package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func TestTheConsoleShowsANoticeAndHowToSendItAgain(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	ear := h.service.Hub().Connect(hub.ComponentIdentity("ear", "native"))
	t.Cleanup(func() { ear.Close(nil) })
	if err := ear.Join(core.Card{ID: "ear", Features: core.FeatureNotices}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	told, err := h.service.Hub().Connect(hub.ComponentIdentity("alice", "rest")).Open(core.Request{
		Intent: core.IntentNotify, To: core.ToAgent("ear"), Notice: &core.Notice{Topic: "garden.rain", Data: json.RawMessage(`{"mm":3}`)},
	}, hub.OpenOptions{Unwatched: true})
	if err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t, h.url())
	p := b.open("/#/tasks/" + string(told.ID()))
	p.shows(".turn", "notifies")
	p.shows(".turn", "garden.rain")
	p.shows(".turn", `"mm"`)
	p.call("Browser.grantPermissions", map[string]any{"origin": h.url(), "permissions": []string{"clipboardReadWrite", "clipboardSanitizedWrite"}}, nil)
	p.call("Page.bringToFront", nil, nil)
	p.click(".exports button:nth-of-type(3)")
	p.shows(".exports .hint", "Copied.")
	if got := p.await(`navigator.clipboard.readText()`); !strings.Contains(got, "/v1/notices'") || !strings.Contains(got, `"topic":"garden.rain","data":{"mm":3}`) {
		t.Errorf("got %s, want the notice as it was sent", got)
	}
}

func TestATaskThatCannotBeReadIsRefusedInsideThePageToo(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	b := newBrowser(t, h.url())
	p := b.open("/#/hub")
	p.shows(".facts", "Version")
	p.await(`(location.hash = '#/tasks/019c0000-0000-7000-8000-000000000000') && true`)
	p.shows(".state", "There is no such task")
	if got := p.await(`String(document.querySelectorAll('.exports, .steering, .tabs').length)`); got != "0" {
		t.Errorf("got %s parts of the task on the page, want none", got)
	}
}

// The hub ends a stream with an error when the rights of its reader change.
func TestAStreamThatTheHubEndsSaysWhyOnThePage(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	b := newBrowser(t, h.url())
	p := b.open("/#/hub")
	p.shows(".facts", "Version")
	p.await(`(() => { const real = window.fetch; window.fetch = (path, o) => String(path).endsWith('/events') ? Promise.resolve(new Response(
		'event: error\ndata: {"status":403,"code":"not_authorized","detail":"the rules have changed"}\n\n', {headers: {'Content-Type': 'text/event-stream'}})) : real(path, o); return true; })()`)
	for _, view := range []string{"#/live", "#/tasks/019c0000-0000-7000-8000-000000000000"} {
		p.await(`(location.hash = '` + view + `') && true`)
		p.shows(".state", "the rules have changed")
	}
}
