package pi_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// conflictingCommands are commands that interfere with one another.
var conflictingCommands = strings.Split(`"type":"create_session","agent":"a"
"type":"create_session","agent":"a","cwd":"/"
"type":"switch_session"
"type":"prompt","message":"one"
"type":"prompt","message":"two"
"type":"prompt","message":"/use b"
"type":"prompt","message":"three","streamingBehavior":"steer"
"type":"steer","message":"this way"
"type":"follow_up","message":"and then"
"type":"abort"
"type":"compact"
"type":"abort_compaction"
"type":"abort_retry"
"type":"set_auto_retry","enabled":true
"type":"bash","command":"echo printed; sleep 0.01"
"type":"abort_bash"
"type":"new_session"
"type":"get_tree"
"type":"get_messages"
"type":"get_fork_messages"
"type":"export_html"
"type":"list_stored_sessions"
"type":"cycle_model"
"type":"get_session_stats"
"type":"delete_session"`, "\n")

// unreliable is the work of an agent that answers, fails in every way that has side effects,
// or never ends.
func unreliable(a *testAgent, b hub.Batch) {
	if !assigned(b) {
		return
	}
	long := core.Text{Text: strings.Repeat("words ", 1000)}
	moods := [][]core.Body{
		{core.Failed{Fault: &core.Fault{Code: core.CodeOverloaded, Message: "not now", Retryable: true}}},
		{core.Failed{Fault: core.NewFault(core.CodeTooLarge, "too large")}},
		{core.Failed{Fault: core.NewFault(core.CodeInvalid, "no")}},
		{core.Text{Text: "begun"}},
		{core.ToolCall{ID: "1", Name: "look", Input: "{}"}, core.ToolResult{ID: "1", Output: "seen"}, long, core.Done{}},
		{long, core.Usage{Input: 5000, Output: 10}, core.Done{}},
		{core.Text{Text: "yes"}, core.Done{}},
	}
	for _, body := range moods[rand.IntN(len(moods))] {
		_ = a.Report(b.Task.ID(), body, nil) // it may have been cancelled meanwhile
	}
}

func TestConcurrentCommandsAreAnsweredOnceAndLeaveNothingRunning(t *testing.T) {
	dir := t.TempDir()
	never := command.Breaker{Failures: -1}
	h, s := newServer(t, pi.Options{
		Commands: command.Options{QueuePrompts: true, PromptTimeout: 200 * time.Millisecond, MaxPending: 1000},
		Bash:     true, SessionDir: dir, ExportDirs: []string{dir}, CompactAt: 1, Breakers: command.Breakers{Agent: never, BashSession: never, BashAll: never},
	})
	features := core.FeatureCancellation | core.FeatureInjection
	joinAgent(t, h, core.Card{ID: "a", MaxConcurrent: 100, Features: features}, unreliable)
	joinAgent(t, h, core.Card{ID: "b", MaxConcurrent: 100}, unreliable)
	const commands = 120
	clients := []*testClient{dial(t, s, pi.ConnOptions{}), dial(t, s, pi.ConnOptions{}), dial(t, s, pi.ConnOptions{})}
	for i := range commands {
		for _, c := range clients {
			what := conflictingCommands[rand.IntN(len(conflictingCommands))]
			c.send(fmt.Sprintf(`{"id":"c%d","sessionId":"s%d",%s}`, i, rand.IntN(2), what))
		}
	}
	for _, c := range clients {
		for i := range commands {
			response := fmt.Sprintf(`{"id":"c%d","type":"response"`, i)
			c.until(response)
			if got := c.count(response); got != 1 {
				t.Errorf("command %d: got %d responses, want 1", i, got)
			}
		}
	}
	// Work after a response, such as a compaction, occupies the lane.
	for _, id := range []string{"s0", "s1"} {
		clients[0].do(`{"type":"set_session_name","sessionId":"` + id + `","name":"last"}`)
	}
	flush(s)
	for _, what := range []string{"commands", "lanes", "runs", "busy sessions"} {
		if n := s.Left()[what]; n != 0 {
			t.Errorf("got %d %s, want none", n, what)
		}
	}
	for id := range strings.FieldsSeq(sessionsOf(t, clients[0])) {
		data, err := os.ReadFile(fileOf(clients[0], id))
		if errors.Is(err, os.ErrNotExist) {
			continue // no messages there
		}
		_, nodes := treeOf(clients[0], id)
		if got, want := bytes.Count(data, []byte("\n"))-1, len(nodes); err != nil || got != want {
			t.Errorf("session %s: got %d entries in its file and %v, want %d", id, got, err, want)
		}
	}
}
