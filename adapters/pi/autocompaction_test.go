package pi_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

const (
	startedFor = `{"type":"auto_compaction_start","reason":"%s"}`
	summaryEnd = `"auto_compaction_end","result":{"summary":"in short","firstKeptEntryId":`
	endedAs    = `{"type":"auto_compaction_end","aborted":%v,"willRetry":false`
)

func TestAFullContextIsCompactedAfterTheRun(t *testing.T) {
	for what, tt := range map[string]struct {
		usage  int64
		opts   pi.Options
		before string
		want   int
	}{
		"full":                {usage: 111_360, want: 1},
		"not full yet":        {usage: 111_359},
		"at half of it":       {usage: 64_000, opts: pi.Options{CompactAt: 50}, want: 1},
		"never":               {usage: 128_000, opts: pi.Options{CompactAt: -1}},
		"not in this session": {usage: 128_000, before: `{"type":"set_auto_compaction","sessionId":"s","enabled":false}`},
		"but in this":         {usage: 128_000, before: `{"type":"set_auto_compaction","sessionId":"s","enabled":true}`, want: 1},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newSummarizer(summaryBodies...)
				g.usage = tt.usage
				_, c := g.converse(t, tt.opts)
				if tt.before != "" {
					c.ok(tt.before)
				}
				c.ok(`{"type":"prompt","sessionId":"s","message":"one"}`) // one turn is too small
				c.ok(`{"type":"prompt","sessionId":"s","message":"two"}`)
				synctest.Wait()
				if starts, ends := c.count(fmt.Sprintf(startedFor, "threshold")), c.count(summaryEnd, `"tokensBefore":`+fmt.Sprint(tt.usage), `"aborted":false,"willRetry":false}`); starts != tt.want || ends != tt.want {
					t.Errorf("got %d starts and %d ends, want %d\n%s", starts, ends, tt.want, c.log())
				}
				want := []string{conversation.RoleCompaction, conversation.RoleUser, conversation.RoleAssistant}
				if tt.want == 0 {
					want = []string{conversation.RoleUser, conversation.RoleAssistant, conversation.RoleUser, conversation.RoleAssistant}
				}
				if d := cmp.Diff(want, rolesOf(t, c)); d != "" {
					t.Errorf("messages (-want +got):\n%s", d)
				}
			})
		})
	}
}

func TestAContextWithoutReportedUsageIsEstimatedFromItsText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newSummarizer(summaryBodies...)
		long := strings.Repeat("so ", 30_000)
		_, c := g.converse(t, pi.Options{}, long, long) // 22,500 tokens each, and the same in the answer
		synctest.Wait()
		if got := c.count("auto_compaction_start"); got != 0 {
			t.Errorf("got %d compactions of 90,000 tokens, want none", got)
		}
		c.ok(`{"type":"prompt","sessionId":"s","message":"` + long + `"}`)
		c.until(summaryEnd)
	})
}

func TestAPromptIsAnsweredBeforeItsCompactionEndsAndTheNextUsesTheResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newServer(t, pi.Options{})
		held := make(chan *task.Task, 1)
		requests := make(chan core.Request, 1)
		n := 0
		a := joinAgent(t, h, core.Card{ID: "a"}, func(a *testAgent, b hub.Batch) {
			switch n++; {
			case !assigned(b):
				n--
			case asksForSummary(b.Task.Request()):
				held <- b.Task
			case n == 4:
				requests <- b.Task.Request()
				fallthrough
			default:
				a.report(b.Task, core.Usage{Input: 120_000}, core.Text{Text: "yes"}, core.Done{})
			}
		})
		c, late := dial(t, s, pi.ConnOptions{}), dial(t, s, pi.ConnOptions{})
		c.open("s", "a")
		c.ok(`{"type":"prompt","sessionId":"s","message":"one"}`)
		c.ok(`{"type":"prompt","sessionId":"s","message":"two"}`)
		task := <-held
		c.send(`{"id":"next","type":"prompt","sessionId":"s","message":"three"}`)
		late.ok(`{"type":"switch_session","sessionId":"s"}`)
		late.until(fmt.Sprintf(startedFor, "threshold"))
		synctest.Wait()
		if got := c.count("command_started", `"next"`); got != 0 {
			t.Error("got the next prompt started, want it to wait for the compaction")
		}
		a.report(task, summaryBodies...)
		want := []string{"What was said before, in short:\n\nin short", "two", "yes"}
		if d := cmp.Diff(want, textsOf((<-requests).History)); d != "" {
			t.Errorf("history of the next prompt (-want +got):\n%s", d)
		}
		late.until(summaryEnd)
		c.until(`"response"`, `"id":"next"`, `"success":true`)
	})
}

func TestAFailedAutomaticCompactionIsReported(t *testing.T) {
	for want, tt := range map[string]struct {
		summary []core.Body
		command string
	}{
		fmt.Sprintf(endedAs, false) + `,"errorMessage":"Auto-compaction failed: no idea"}`: {summary: []core.Body{core.Failed{Fault: core.NewFault(core.CodeInternal, "no idea")}}},
		fmt.Sprintf(endedAs, true) + `}`: {command: `{"type":"abort_compaction","sessionId":"s"}`},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := newSummarizer(tt.summary...)
			g.usage = 120_000
			_, c := g.converse(t, pi.Options{}, "one", "two")
			g.next(t, true)
			if tt.command != "" {
				c.ok(tt.command)
			}
			c.until(want)
			if got := len(rolesOf(t, c)); got != 4 {
				t.Errorf("got %d messages, want 4", got)
			}
			c.ok(`{"type":"set_auto_compaction","sessionId":"s","enabled":false}`)
			c.ok(`{"type":"prompt","sessionId":"s","message":"three"}`)
		})
	}
}

func TestAnOpenCircuitPreventsAnAutomaticCompaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newSummarizer(core.Failed{Fault: core.NewFault(core.CodeInternal, "no idea")})
		g.usage = 120_000
		_, c := g.converse(t, pi.Options{Breakers: command.Breakers{Agent: command.Breaker{Failures: 1}}}, "one", "two")
		c.until("auto_compaction_end", "no idea")
		c.fails(compactCommand, "Circuit breaker open: Circuit open for a (recovery in 30s)")
	})
}

// tooMuch answers requests, but for a number of times it sends the bodies and then fails with
// too_large. It always answers requests for a summary.
func tooMuch(g *summarizer, times int, first ...core.Body) func(*testAgent, hub.Batch) {
	return func(a *testAgent, b hub.Batch) {
		if assigned(b) && b.Task.Request().Content == "three" && times > 0 {
			times--
			g.requests <- b.Task.Request()
			a.report(b.Task, append(first, core.Failed{Fault: core.NewFault(core.CodeTooLarge, "too long")})...)
			return
		}
		g.work(a, b)
	}
}

// overflowing returns a session in which the third prompt is too large that many times.
func overflowing(t *testing.T, opts pi.Options, g *summarizer, times int, first ...core.Body) (*hub.Hub, *testClient) {
	t.Helper()
	h, s := newServer(t, opts)
	joinAgent(t, h, core.Card{ID: "a", Features: core.FeatureCancellation}, tooMuch(g, times, first...))
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	c.ok(`{"type":"prompt","sessionId":"s","message":"` + strings.Repeat("one ", 20) + `"}`)
	c.ok(`{"type":"prompt","sessionId":"s","message":"two"}`)
	return h, c
}

const three = `{"id":"3","type":"prompt","sessionId":"s","message":"three"}`

func TestATooLargeConversationIsCompactedAndRetriedOnce(t *testing.T) {
	long := []string{conversation.RoleUser, conversation.RoleAssistant, conversation.RoleUser, conversation.RoleAssistant, conversation.RoleUser, conversation.RoleAssistant}
	for what, tt := range map[string]struct {
		times    int
		first    []core.Body
		summary  []core.Body
		opts     pi.Options
		requests int // for the third answer
		end      string
		stop     string
		stands   []string
	}{
		"once": {times: 1, summary: summaryBodies, requests: 2, end: `"aborted":false,"willRetry":true}`, stop: render.StopDone,
			stands: []string{conversation.RoleCompaction, conversation.RoleUser, conversation.RoleAssistant, conversation.RoleUser, conversation.RoleAssistant}},
		"twice": {times: 2, summary: summaryBodies, requests: 2, end: `"aborted":false,"willRetry":true}`, stop: render.StopError,
			stands: []string{conversation.RoleCompaction, conversation.RoleUser, conversation.RoleAssistant, conversation.RoleUser, conversation.RoleAssistant}},
		"without a summary": {times: 1, summary: []core.Body{core.Done{}}, requests: 1, stop: render.StopError, stands: long,
			end: fmt.Sprintf(endedAs, false) + `,"errorMessage":"Context overflow recovery failed: the agent gave no summary"}`},
		"after text":         {times: 1, first: []core.Body{core.Text{Text: "I"}}, requests: 1, stop: render.StopError, stands: long},
		"never":              {times: 1, opts: pi.Options{CompactAt: -1}, requests: 1, stop: render.StopError, stands: long},
		"not with some left": {times: 0, requests: 1, stop: render.StopDone, stands: long},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newSummarizer(tt.summary...)
				_, c := overflowing(t, tt.opts, g, tt.times, tt.first...)
				c.ok(three)
				if tr := c.transcript("s"); tr.StopReason != tt.stop {
					t.Errorf("got stop reason %s, want %s", tr.StopReason, tt.stop)
				}
				starts := 0
				if tt.end != "" {
					starts = 1
				}
				if got := c.count(fmt.Sprintf(startedFor, "overflow")); got != starts || c.count("auto_compaction_end", tt.end) != starts {
					t.Errorf("got %d starts, want %d and the end %q\n%s", got, starts, tt.end, c.log())
				}
				if d := cmp.Diff(tt.stands, rolesOf(t, c)); d != "" {
					t.Errorf("messages (-want +got):\n%s", d)
				}
				var requests []core.Request
				for len(g.requests) > 0 {
					if r := <-g.requests; r.Content == "three" {
						requests = append(requests, r)
					}
				}
				if len(requests) != tt.requests {
					t.Fatalf("got %d requests, want %d", len(requests), tt.requests)
				}
				if tt.requests == 2 {
					want := []string{"What was said before, in short:\n\nin short", "two", "you said two"}
					if d := cmp.Diff(want, textsOf(requests[1].History)); d != "" {
						t.Errorf("history of the second attempt (-want +got):\n%s", d)
					}
				}
				if starts, ends := c.count(`"event":{"type":"agent_start"`), c.count(`"event":{"type":"agent_end"`); starts != ends {
					t.Errorf("got %d starts and %d ends, want the same number", starts, ends)
				}
			})
		})
	}
}

func TestARunThatWaitsForItsCompactionEndsWithTheSessionTheCommandAndTheHub(t *testing.T) {
	for what, end := range map[string]func(h *hub.Hub, c *testClient){
		"abort":            func(_ *hub.Hub, c *testClient) { c.ok(`{"type":"abort","sessionId":"s"}`) },
		"abort_compaction": func(_ *hub.Hub, c *testClient) { c.ok(`{"type":"abort_compaction","sessionId":"s"}`) },
		"delete_session":   func(_ *hub.Hub, c *testClient) { c.ok(`{"type":"delete_session","sessionId":"s"}`) },
		"hub": func(h *hub.Hub, _ *testClient) {
			ctx, stop := context.WithTimeout(context.Background(), time.Second)
			defer stop()
			_ = h.Close(ctx, "over")
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newSummarizer()
				h, c := overflowing(t, pi.Options{}, g, 1)
				c.send(three)
				g.next(t, true)
				c.ok(`{"type":"steer","sessionId":"s","message":"queued"}`)
				end(h, c)
				c.until(`"response"`, `"id":"3"`, `"success":true`)
				if got := c.count("auto_compaction_end", `"willRetry":false`); got != 1 && what != "delete_session" {
					t.Errorf("got %d ends of the compaction, want one\n%s", got, c.log())
				}
			})
		})
	}
}

func TestARunWhoseCompactionTakesTooLongIsATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newSummarizer()
		_, c := overflowing(t, pi.Options{Commands: command.Options{PromptTimeout: time.Minute}}, g, 1)
		f := c.doUnlimited(three)
		if want := "Command 'prompt' timed out after 60000ms"; f.Error != want || !f.TimedOut {
			t.Errorf("got %s, want %q and timedOut", f.Raw, want)
		}
	})
}
