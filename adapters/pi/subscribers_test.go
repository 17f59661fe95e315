package pi_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
)

// endings are the frames in which messages, turns and runs end.
func endings(c *testClient, session string) []string {
	return slices.DeleteFunc(c.events(session), func(frame string) bool {
		return !strings.Contains(frame, `"type":"message_end"`) && !strings.Contains(frame, `"type":"turn_end"`) &&
			!strings.Contains(frame, `"type":"agent_end"`) && !strings.Contains(frame, `"type":"tool_execution_end"`)
	})
}

func TestALateSubscriberEndsWithTheSameMessages(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a", Features: core.FeatureInjection | core.FeatureFiles}, w.work)
	first, second := dial(t, s, pi.ConnOptions{}), dial(t, s, pi.ConnOptions{Snapshots: render.SnapshotsNone})
	first.open("s", "a")
	first.send(`{"id":"1","type":"prompt","sessionId":"s","message":"go"}`)
	task := <-w.tasks
	a.report(task, core.Thinking{Text: "hm"}, core.Text{Text: strings.Repeat("long ", 5000)}, core.Usage{Input: 3, Output: 5},
		core.ToolCall{ID: "k", Name: "ls", Input: "{}"})
	first.ok(`{"id":"2","type":"steer","sessionId":"s","message":"left"}`)
	in := (<-w.requests).(core.Injected)
	a.report(task, core.InjectionAnswered{ID: in.ID, Accepted: true}, core.Text{Text: "turning"})
	first.until(`"text":"left"`)
	second.ok(`{"id":"1","type":"switch_session","sessionId":"s"}`)
	second.ok(`{"id":"2","type":"follow_up","sessionId":"s","message":"and then?"}`)
	a.report(task, core.ToolResult{ID: "k", Output: "a b"}, core.File{Name: "f", MediaType: "image/png", Data: []byte{1}}, core.Text{Text: "done"}, core.Done{})
	a.report(<-w.tasks, core.Text{Text: "!"}, core.Done{})
	for _, c := range []*testClient{first, second} {
		c.until(`"agent_end"`)
		c.until(`"command_finished"`, `"commandId":"1"`, `"prompt"`)
	}
	if diff := cmp.Diff(endings(first, "s"), endings(second, "s")); diff != "" {
		t.Errorf("what ended (-first +second):\n%s", diff)
	}
	if got, want := roles(t, second, "s"), roles(t, first, "s"); got != want || !strings.HasSuffix(got, "user:and then? assistant:begun!") {
		t.Errorf("messages: got %s for the second, want %s as for the first", got, want)
	}
}

// whole returns the frames of a session's runs with the deltas of each block joined, since the
// chunks of a text may differ. It omits updates that only repeat the message.
func (c *testClient) whole(session string, updates bool) []string {
	var all []string
	grown := map[int]string{}
	for _, f := range c.received() {
		if f.SessionID != session {
			continue
		}
		var e struct {
			Type   string
			Update struct {
				Type         string
				ContentIndex int
				Delta        string
			} `json:"assistantMessageEvent"`
		}
		if err := json.Unmarshal(f.Event, &e); err != nil {
			c.t.Fatal(err)
		}
		u := e.Update
		switch {
		case e.Type == "queue_update": // not part of the run
		case e.Type == "message_update" && !updates:
		case strings.HasSuffix(u.Type, "_delta"):
			grown[u.ContentIndex] += u.Delta
		default:
			if strings.HasSuffix(u.Type, "_end") {
				all = append(all, fmt.Sprintf("block %d: %s", u.ContentIndex, grown[u.ContentIndex]))
				delete(grown, u.ContentIndex)
			}
			all = append(all, string(f.Raw))
		}
	}
	return all
}

// A client that subscribes at any time gets the same frames as one that was subscribed from
// the beginning, over several turns and a failed attempt.
func TestEverySubscriberGetsTheSameFrames(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var script [][]core.Body // the answers of the agent, by task
		turns := rapid.IntRange(1, 3).Draw(rt, "turns")
		for turn := range turns {
			if rapid.Bool().Draw(rt, "an attempt fails") {
				f := &core.Fault{Code: core.CodeOverloaded, Message: "not now", Retryable: true}
				script = append(script, []core.Body{core.Text{Text: "half"}, core.Failed{Fault: f}})
			}
			script = append(script, drawTurn(rt, turn))
		}
		steps := len(slices.Concat(script...))
		joins := []int{rapid.IntRange(0, steps-1).Draw(rt, "one comes"), rapid.IntRange(0, steps-1).Draw(rt, "another comes")}

		h, s := newServer(t, pi.Options{})
		w := newHeldAgent()
		a := joinAgent(t, h, core.Card{ID: "a", Features: core.FeatureFiles | core.FeatureToolStates}, w.work)
		early := dial(t, s, pi.ConnOptions{Snapshots: render.SnapshotsNone})
		late := []*testClient{dial(t, s, pi.ConnOptions{Snapshots: render.SnapshotsNone}), dial(t, s, pi.ConnOptions{})}
		early.open("s", "a")
		early.send(`{"id":"p","type":"prompt","sessionId":"s","message":"0"}`)
		task := <-w.tasks
		for turn := 1; turn < turns; turn++ {
			early.ok(fmt.Sprintf(`{"type":"follow_up","sessionId":"s","message":"%d"}`, turn))
		}
		at := 0
		for n, bodies := range script {
			if n > 0 {
				task = <-w.tasks
			}
			for _, b := range bodies {
				for i, c := range late {
					if joins[i] == at {
						c.ok(`{"type":"switch_session","sessionId":"s"}`)
					}
				}
				a.report(task, b)
				at++
			}
		}
		all := slices.Concat(late, []*testClient{early})
		for _, c := range all {
			c.until(`"command_finished"`, `"commandId":"p"`, `"success":true`)
		}
		for i, c := range all {
			deltas := i != 1 // client 1 gets snapshots
			if d := cmp.Diff(early.whole("s", deltas), c.whole("s", deltas)); d != "" {
				rt.Fatalf("what client %d was told, who came before %d (-early +late):\n%s", i, joins[min(i, 1)], d)
			}
			if got := c.transcript("s").Snapshots; got != early.transcript("s").Snapshots || got == "" {
				rt.Errorf("client %d: got the text %q, want %q", i, got, early.transcript("s").Snapshots)
			}
			c.Close()
		}
		a.Close(nil)
	})
}

// drawTurn draws the events of a task up to its end.
func drawTurn(t *rapid.T, turn int) []core.Body {
	var bodies []core.Body
	for i := range rapid.IntRange(0, 8).Draw(t, "length") {
		switch id := fmt.Sprint(turn, "-", i); rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0:
			bodies = append(bodies, core.Thinking{Text: "thought " + id})
		case 1:
			bodies = append(bodies, core.ToolCall{ID: id, Name: "ls", Input: `{"n":` + fmt.Sprint(i) + `}`},
				core.ToolState{ID: id, State: core.ToolRunning}, core.ToolResult{ID: id, Output: "out " + id})
		case 2:
			bodies = append(bodies, core.Usage{Input: int64(i), Output: 1})
		case 3:
			bodies = append(bodies, core.File{Name: "f" + id, MediaType: rapid.SampledFrom([]string{"text/plain", "image/png"}).Draw(t, "media"), Data: []byte(id)})
		case 4:
			bodies = append(bodies, core.SessionLost{Reason: id})
		default:
			bodies = append(bodies, core.Text{Text: strings.Repeat("text "+id+" ", rapid.SampledFrom([]int{1, 10, 400}).Draw(t, "size"))})
		}
	}
	return append(bodies, core.Done{})
}
