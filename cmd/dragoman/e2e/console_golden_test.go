package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
	corehub "github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// logs keeps the events of the tasks of a hub, in the order in which they were opened.
type logs struct {
	observer
	mu    sync.Mutex
	order []core.TaskID
	of    map[core.TaskID][]core.Event
}

// Appended implements hub.Observer.
func (l *logs) Appended(id core.TaskID, e core.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[id] == nil {
		l.order = append(l.order, id)
	}
	l.of[id] = append(l.of[id], e)
}

func (*logs) Joined(core.Card)        {}
func (*logs) Left(core.AgentID, bool) {}

// goldenLogs plays the recorded conversations and returns the logs of their tasks: one of each shape,
// that is with the same kinds of events.
func goldenLogs(t *testing.T) (all [][]core.Event) {
	t.Helper()
	shapes := map[string]bool{}
	for _, s := range readConversations(t) {
		l := &logs{of: map[core.TaskID][]core.Event{}}
		synctest.Test(t, func(t *testing.T) {
			runConversation(t, s, false, func(o *corehub.Options) { o.Observer = l })
		})
		for _, id := range l.order {
			var kinds []string
			for _, e := range l.of[id] {
				kinds = append(kinds, e.Body.Kind().String())
			}
			slices.Sort(kinds)
			if shape := strings.Join(slices.Compact(kinds), " "); !shapes[shape] {
				shapes[shape] = true
				all = append(all, l.of[id])
			}
		}
	}
	return all
}

// replay has an agent and a requester of a hub say what a log has, and returns the task.
func (h *testHub) replay(t *testing.T, agent hubAgent, asker *corehub.Session, log []core.Event) *task.Task {
	t.Helper()
	opened, ok := log[0].Body.(core.Opened)
	if !ok || opened.Request.Notice != nil {
		return nil
	}
	r := core.Request{To: core.ToAgent(agent.AgentID()), Content: opened.Request.Content, Data: opened.Request.Data, Attachments: opened.Request.Attachments, Context: opened.Request.Context}
	asked, err := asker.Open(r, corehub.OpenOptions{Unwatched: true})
	if err != nil {
		t.Fatal(err)
	}
	agent.nextTask()
	for _, e := range log[1:] {
		// What does not fit a task that goes another way is refused: what counts is that it is shown as it is.
		switch b := e.Body.(type) {
		case core.ApprovalDecided:
			_ = asker.Decide(t.Context(), asked.ID(), b)
		case core.Injected:
			_ = asker.Inject(t.Context(), asked.ID(), b)
		case core.CancelRequested:
			_ = asker.Cancel(asked.ID(), b.Reason)
		case core.Assigned, core.Opened, core.Retrying:
		default:
			_ = agent.Report(asked.ID(), b, e.Foreign)
		}
	}
	if !asked.HasEnded() {
		_ = agent.Report(asked.ID(), core.Done{}, nil)
	}
	return asked
}

// Each shape of task in the recorded conversations is shown in each tab as it is in the log.
func TestTheConsoleShowsTheGoldenConversations(t *testing.T) {
	tier.Full(t, "it opens a browser")
	t.Parallel()
	all := goldenLogs(t)
	if len(all) < 40 {
		t.Fatalf("got %d shapes of tasks, want those of the recorded conversations", len(all))
	}
	h := newTestHub(t, nil)
	b := newBrowser(t, h.url())
	agent := h.joinAgent(t, "worker")
	asker := h.service.Hub().Connect(corehub.Identity{Principal: core.Principal{ID: "alice", Operator: true}, Dialect: "rest"})
	t.Cleanup(func() { asker.Close(nil) })
	live := b.openLive()
	p := b.open("/#/tasks")
	shown, events := 0, 0
	for _, log := range all {
		asked := h.replay(t, agent, asker, log)
		if asked == nil {
			continue
		}
		shown++
		var text, kinds strings.Builder
		tools := map[string]bool{}
		n := 0
		l := asked.Log()
		for e := range l.All() {
			n++
			fmt.Fprintf(&kinds, "%s ", e.Body.Kind())
			switch b := e.Body.(type) {
			case core.Text:
				text.WriteString(b.Text)
			case core.ToolCall:
				tools[b.ID] = true
			case core.ToolState:
				tools[b.ID] = true
			case core.ToolResult:
				tools[b.ID] = true
			case core.ApprovalRequested:
				tools[b.ID] = true
			}
		}
		events += n
		last := l.Last().Body.Kind().String()
		p.visit("/#/tasks/" + string(asked.ID()))
		p.await(fmt.Sprintf(`document.querySelector('h1 code').textContent === %s && document.querySelector('.facts .is').textContent === %s && document.querySelector('.part.%s')`, plainJSON(asked.ID()), plainJSON(last), last))
		// Markdown has signs that are not seen, and breaks lines in its own way.
		const words = `.replace(/[^\p{L}\p{N}]/gu, '')`
		if got := p.await(fmt.Sprintf(`'text: ' + ([...document.querySelectorAll('.part.text .prose')].map((e) => e.innerText).join('')%s === %s%s)`, words, plainJSON(text.String()), words)); got != "text: true" {
			got = p.await(`'text: ' + [...document.querySelectorAll('.part.text .prose')].map((e) => e.innerText).join('')`)
			t.Errorf("%s: got the text %q, want %q", kinds.String(), got, text.String())
		}
		if got := p.await(`document.querySelectorAll('.part.tool').length + ' tools'`); got != fmt.Sprint(len(tools), " tools") {
			t.Errorf("%s: got %s, want %d", kinds.String(), got, len(tools))
		}
		p.visit("/#/tasks/" + string(asked.ID()) + "/timeline")
		p.await(`document.querySelector('svg .bar.task')`)
		p.visit("/#/tasks/" + string(asked.ID()) + "/events")
		p.await(`document.querySelector('main .row .kind')`)
		if got := p.await(`[...document.querySelectorAll('main .row')].sort((a, b) => a.getAttribute('aria-posinset') - b.getAttribute('aria-posinset')).map((e) => e.querySelector('.kind').textContent + ' ').join('')`); got != kinds.String() && n < 20 {
			t.Errorf("got the events %s, want %s", got, kinds.String())
		}
	}
	p.visit("/#/tasks")
	p.shows(".state", fmt.Sprintf("%d tasks.", shown))
	p.visit("/#/conversations")
	p.await(fmt.Sprintf(`document.querySelectorAll('.talk-list li').length >= %d`, min(shown, 60)))
	live.call("Page.bringToFront", nil, nil) // a page that nobody sees lets go of its stream
	live.await(fmt.Sprintf(`document.querySelector('.state').textContent === (%d).toLocaleString('en') + ' of ' + (%d).toLocaleString('en') + ' events shown.'`, events, events))
	t.Logf("%d shapes of tasks, %d events", shown, events)
}
