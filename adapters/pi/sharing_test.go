package pi

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
)

// endings are the frames in which messages, turns and runs end: they hold everything.
func endings(c *caller, session string) []string {
	return slices.DeleteFunc(c.events(session), func(frame string) bool {
		return !strings.Contains(frame, `"type":"message_end"`) && !strings.Contains(frame, `"type":"turn_end"`) &&
			!strings.Contains(frame, `"type":"agent_end"`) && !strings.Contains(frame, `"type":"tool_execution_end"`)
	})
}

func TestAClientThatJoinsInTheMiddleOfARunEndsWithTheSameMessages(t *testing.T) {
	h, s := newStage(t, Options{})
	w := holding()
	a := join(t, h, core.Card{ID: "a", Features: core.FeatureInjection | core.FeatureFiles}, w.work)
	first, second := dial(t, s, ConnOptions{}), dial(t, s, ConnOptions{Snapshots: SnapshotsNone})
	first.open("s", "a")
	first.send(`{"id":"1","type":"prompt","sessionId":"s","message":"go"}`)
	task := <-w.tasks
	a.say(task, core.Thinking{Text: "hm"}, core.Text{Text: strings.Repeat("long ", 5000)}, core.Usage{Input: 3, Output: 5},
		core.ToolCall{ID: "k", Name: "ls", Input: "{}"})
	first.ok(`{"id":"2","type":"steer","sessionId":"s","message":"left"}`)
	in := (<-w.heard).(core.Injected)
	a.say(task, core.InjectionAnswered{ID: in.ID, Accepted: true}, core.Text{Text: "turning"})
	first.until(`"text":"left"`)
	second.ok(`{"id":"1","type":"switch_session","sessionId":"s"}`)
	second.ok(`{"id":"2","type":"follow_up","sessionId":"s","message":"and then?"}`)
	a.say(task, core.ToolResult{ID: "k", Output: "a b"}, core.File{Name: "f", MediaType: "image/png", Data: []byte{1}}, core.Text{Text: "done"}, core.Done{})
	a.say(<-w.tasks, core.Text{Text: "!"}, core.Done{})
	for _, c := range []*caller{first, second} {
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
