package pi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// summarizer is an agent that answers requests for a summary with the bodies and echoes all
// others. It records the requests.
type summarizer struct {
	summary  []core.Body
	usage    int64 // of an answer, or 0
	requests chan core.Request
}

func newSummarizer(summary ...core.Body) *summarizer {
	return &summarizer{summary: summary, requests: make(chan core.Request, 100)}
}

var summaryBodies = []core.Body{core.Text{Text: "in short"}, core.Done{}}

func (g *summarizer) work(a *testAgent, b hub.Batch) {
	if !assigned(b) {
		return
	}
	r := b.Task.Request()
	g.requests <- r
	if asksForSummary(r) {
		a.report(b.Task, g.summary...)
		return
	}
	if g.usage > 0 {
		a.report(b.Task, core.Usage{Input: g.usage})
	}
	a.report(b.Task, core.Text{Text: "you said " + r.Content}, core.Done{})
}

const cancelledCompaction = "Compaction cancelled"

func asksForSummary(r core.Request) bool {
	return strings.HasPrefix(r.Content, "Sum up the conversation before this message. From now on the summary stands for it")
}

// next returns the next request: for a summary, or another.
func (g *summarizer) next(t *testing.T, summary bool) core.Request {
	t.Helper()
	for range cap(g.requests) {
		select {
		case r := <-g.requests:
			if asksForSummary(r) == summary {
				return r
			}
		case <-time.After(testTimeout):
		}
	}
	t.Fatal("got no request, want one")
	return core.Request{}
}

// converse returns a session with these prompts.
func (g *summarizer) converse(t *testing.T, opts pi.Options, turns ...string) (*pi.Server, *testClient) {
	t.Helper()
	h, s := newServer(t, opts)
	joinAgent(t, h, core.Card{ID: "a", Features: core.FeatureCancellation}, g.work)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	for _, text := range turns {
		c.ok(string(strictjson.Encode(map[string]string{"type": "prompt", "sessionId": "s", "message": text})))
	}
	return s, c
}

const compactCommand = `{"id":"c","type":"compact","sessionId":"s"}`

func rolesOf(t *testing.T, c *testClient) []string {
	t.Helper()
	var roles []string
	for _, m := range messagesOf(t, c, "s") {
		roles = append(roles, m.Role)
	}
	return roles
}

func textsOf(turns []core.Turn) []string {
	var all []string
	for _, t := range turns {
		all = append(all, t.Text)
	}
	return all
}

func TestACompactionReplacesTheFirstMessagesByASummary(t *testing.T) {
	g := newSummarizer(summaryBodies...)
	g.usage = 100_000
	_, c := g.converse(t, pi.Options{}, "one", "two", "three")
	f := c.ok(`{"id":"c","type":"compact","sessionId":"s","customInstructions":"mind the gap"}`)
	type result struct {
		Summary, FirstKeptEntryID string
		TokensBefore              int64
	}
	var got result
	if err := json.Unmarshal(f.Data, &got); err != nil {
		t.Fatal(err)
	}
	_, nodes := treeOf(c, "s")
	if want := (result{"in short", nodes[5].EntryID, 100_000}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	prompted, requested := g.next(t, false), g.next(t, true)
	if d := cmp.Diff([]string{"one", "you said one", "two", "you said two"}, textsOf(requested.History)); d != "" {
		t.Errorf("history of the summary request (-want +got):\n%s", d)
	}
	if !strings.HasSuffix(requested.Content, "\n\nmind the gap") || requested.Thread == prompted.Thread {
		t.Errorf("got request %q in thread %q, want the client's instructions, in another thread than the session's", requested.Content, requested.Thread)
	}
	if d := cmp.Diff([]string{conversation.RoleCompaction, conversation.RoleUser, conversation.RoleAssistant}, rolesOf(t, c)); d != "" {
		t.Errorf("messages (-want +got):\n%s", d)
	}
	for len(g.requests) > 0 {
		<-g.requests
	}
	c.ok(`{"type":"prompt","sessionId":"s","message":"four"}`)
	want := []string{"What was said before, in short:\n\nin short", "three", "you said three"}
	if d := cmp.Diff(want, textsOf(g.next(t, false).History)); d != "" {
		t.Errorf("history of the next prompt (-want +got):\n%s", d)
	}
}

func TestACompactionKeepsAtMostHalfOfTheHistory(t *testing.T) {
	g := newSummarizer(summaryBodies...)
	long := strings.Repeat("so ", 3000) // 2,250 tokens, and the same in its answer
	_, c := g.converse(t, pi.Options{}, long, long, long)
	c.ok(compactCommand)
	if d := cmp.Diff([]string{conversation.RoleCompaction, conversation.RoleUser, conversation.RoleAssistant}, rolesOf(t, c)); d != "" {
		t.Errorf("messages (-want +got):\n%s", d)
	}
}

func TestCompactingTooLittleFails(t *testing.T) {
	for want, turns := range map[string][]string{
		"Nothing to compact (session too small)": {"one", "two"},
		"Already compacted":                      {strings.Repeat("so ", 20_000), "two"},
		"No model selected":                      nil,
	} {
		g := newSummarizer(summaryBodies...)
		_, c := g.converse(t, pi.Options{}, turns...)
		switch want {
		case "No model selected":
			c.open("t", "")
			c.fails(`{"type":"compact","sessionId":"t"}`, want)
			continue
		case "Already compacted":
			c.ok(compactCommand)
			c.ok(`{"type":"set_session_name","sessionId":"s","name":"n"}`)
		}
		c.fails(`{"type":"compact","sessionId":"s"}`, want)
	}
}

func TestNothingIsCompactedIfAgentsGetNoHistory(t *testing.T) {
	h, s := newServerOn(t, hub.Options{Limits: hub.Limits{HistoryBytes: -1}}, pi.Options{})
	joinAgent(t, h, core.Card{ID: "a"}, echoAgent)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	if f := c.do(compactCommand); f.Success || !strings.Contains(f.Error, "limits.history_bytes") {
		t.Errorf("got %s, want a failure that names the setting", f.Raw)
	}
}

func TestAFailedCompactionChangesNothing(t *testing.T) {
	for want, summary := range map[string][]core.Body{
		"no idea":                   {core.Failed{Fault: core.NewFault(core.CodeInternal, "no idea")}},
		"the agent gave no summary": {core.Text{Text: " "}, core.Done{}},
		"the summary has 32769 bytes, and agents are told at most 32768: half of limits.history_bytes": {core.Text{Text: strings.Repeat("x", 32769)}, core.Done{}},
	} {
		g := newSummarizer(summary...)
		g.usage = 100_000
		_, c := g.converse(t, pi.Options{}, "one", "two")
		leaf, nodes := treeOf(c, "s")
		c.fails(compactCommand, want)
		if after, now := treeOf(c, "s"); after != leaf || len(now) != len(nodes) {
			t.Errorf("%s: got the leaf %s of %d entries, want %s of %d", want, after, len(now), leaf, len(nodes))
		}
		c.ok(`{"type":"prompt","sessionId":"s","message":"three"}`)
		if d := cmp.Diff(6, len(rolesOf(t, c))); d != "" {
			t.Errorf("%s: messages (-want +got):\n%s", want, d)
		}
	}
}

func TestEveryWayToCancelACompaction(t *testing.T) {
	for what, command := range map[string]string{
		"abort_compaction": `{"type":"abort_compaction","sessionId":"s"}`,
		"abort":            `{"type":"abort","sessionId":"s"}`,
		"delete_session":   `{"type":"delete_session","sessionId":"s"}`,
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newSummarizer() // never answers
				g.usage = 100_000
				_, c := g.converse(t, pi.Options{}, "one", "two")
				c.send(compactCommand)
				g.next(t, true)
				c.ok(command)
				c.until(`"response"`, `"id":"c"`, `"success":false`, `"error":"`+cancelledCompaction+`"`)
			})
		})
	}
}

func TestAbortCompactionWithoutACompactionDoesNothing(t *testing.T) {
	g := newSummarizer(summaryBodies...)
	_, c := g.converse(t, pi.Options{}, "one")
	if f := c.ok(`{"type":"abort_compaction","sessionId":"s"}`); f.SessionVersion == nil || *f.SessionVersion != 2 {
		t.Errorf("got %s, want success and the next version", f.Raw)
	}
}

func TestACompactionThatTakesTooLongIsATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newSummarizer()
		g.usage = 100_000
		_, c := g.converse(t, pi.Options{Commands: command.Options{PromptTimeout: time.Minute}}, "one", "two")
		f := c.doUnlimited(compactCommand)
		if want := "Command 'compact' timed out after 60000ms"; f.Error != want || !f.TimedOut {
			t.Errorf("got %s, want %q and timedOut", f.Raw, want)
		}
		if got := len(rolesOf(t, c)); got != 4 {
			t.Errorf("got %d messages, want 4", got)
		}
	})
}

func TestACompactionEndsWithItsClientIfTasksAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newSummarizer()
		g.usage = 100_000
		s, c := g.converse(t, pi.Options{DropTasks: true}, "one", "two")
		other := dial(t, s, pi.ConnOptions{})
		c.send(compactCommand)
		g.next(t, true)
		c.Close()
		other.until("command_finished", `"commandId":"c"`, cancelledCompaction)
	})
}

func TestAnOpenCircuitPreventsASummaryRequest(t *testing.T) {
	g := newSummarizer(core.Failed{Fault: core.NewFault(core.CodeInternal, "no idea")})
	g.usage = 100_000
	_, c := g.converse(t, pi.Options{Breakers: command.Breakers{Agent: command.Breaker{Failures: 1}}}, "one", "two")
	c.fails(compactCommand, "no idea")
	c.fails(`{"type":"compact","sessionId":"s"}`, "Circuit breaker open: Circuit open for a (recovery in 30s)")
}

func TestASummaryRequestHasTheNumberOfOmittedMessages(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	g := newSummarizer(summaryBodies...)
	card := core.Card{ID: "a", Metadata: map[string]json.RawMessage{"context_window": json.RawMessage("20000")}}
	joinAgent(t, h, card, g.work)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	c.ok(`{"type":"set_auto_compaction","sessionId":"s","enabled":false}`)
	for range 5 {
		c.ok(`{"type":"prompt","sessionId":"s","message":"` + strings.Repeat("so ", 6_000) + `"}`)
	}
	c.ok(compactCommand)
	requested := g.next(t, true)
	if !strings.Contains(requested.Content, "The first 5 messages do not fit here") || len(requested.History) != 3 {
		t.Errorf("got %d turns and %q, want 3 and a note that 5 are omitted", len(requested.History), requested.Content)
	}
	if f := c.ok(`{"type":"get_context_usage","sessionId":"s"}`); !has(f, `"contextWindow":20000`) {
		t.Errorf("got %s, want the window in the agent's error", f.Raw)
	}
}

func TestACompactionIsInTheFileOfItsSession(t *testing.T) {
	g := newSummarizer(summaryBodies...)
	g.usage = 100_000
	s, c := g.converse(t, pi.Options{SessionDir: t.TempDir()}, "one", "two")
	c.ok(compactCommand)
	flush(s)
	c.ok(`{"type":"load_session","sessionPath":"` + fileOf(c, "s") + `","sessionId":"t"}`)
	for len(g.requests) > 0 {
		<-g.requests
	}
	c.ok(`{"type":"prompt","sessionId":"t","message":"three"}`)
	want := []string{"What was said before, in short:\n\nin short", "two", "you said two"}
	if d := cmp.Diff(want, textsOf(g.next(t, false).History)); d != "" {
		t.Errorf("history of a loaded session (-want +got):\n%s", d)
	}
}

func TestTheContextWindowIsThatOfTheCard(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	c := dial(t, s, pi.ConnOptions{})
	for metadata, want := range map[string]int{
		`{}`: 128_000, `{"context_window":1000000}`: 1_000_000, `{"contextWindow":2e5}`: 200_000,
		`{"context_window":"many"}`: 128_000, `{"context_window":0}`: 128_000, `{"context_window":1e300}`: 128_000,
	} {
		card := core.Card{ID: core.AgentID(core.NewID())}
		if err := json.Unmarshal([]byte(metadata), &card.Metadata); err != nil {
			t.Fatal(err)
		}
		joinAgent(t, h, card, echoAgent)
		c.ok(`{"type":"create_session","sessionId":"` + string(card.ID) + `","agent":"` + string(card.ID) + `"}`)
		if f := c.ok(`{"type":"get_context_usage","sessionId":"` + string(card.ID) + `"}`); !has(f, fmt.Sprintf(`"contextWindow":%d,`, want)) {
			t.Errorf("%s: got %s, want %d", metadata, f.Data, want)
		}
	}
}
