package client_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/a2a/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
)

// said are the turns of tasks in a thread.
func said(tasks ...core.TaskID) []core.Turn {
	var out []core.Turn
	for _, id := range tasks {
		out = append(out,
			core.Turn{Role: core.RoleUser, Text: "asked in " + string(id), Task: id},
			core.Turn{Role: core.RoleAssistant, Agent: "other", Text: "answered in " + string(id), Task: id})
	}
	return out
}

// asksAfter gives the agent a task after the turns of others, and returns which of them the
// remote was told of.
func (r *ran) asksAfter(f *fake, id core.TaskID, history []core.Turn) (told string) {
	r.Helper()
	c := newTurn(r, "x")
	c.id, c.request.History = id, history
	if err := r.work(c); err != nil {
		r.Fatalf("Work: got %v, want no error", err)
	}
	calls := f.called()
	var sent struct {
		Message struct{ Parts []struct{ Text string } }
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(calls[len(calls)-1], "SendStreamingMessage ")), &sent); err != nil {
		r.Fatal(err)
	}
	var all []string
	for _, p := range sent.Message.Parts {
		for line := range strings.Lines(p.Text) {
			if _, id, ok := strings.Cut(strings.TrimSpace(line), " answered in "); ok {
				all = append(all, id)
			}
		}
	}
	return fmt.Sprint(all)
}

func TestARemoteWithAMemoryIsToldWhatOthersSaidSince(t *testing.T) {
	f, log := remembering(t), &coretest.MemoryLog{}
	a := run(t, client.Options{URL: f.URL, Sessions: log})
	for _, step := range []struct {
		task    core.TaskID
		history []core.Turn
		want    string
	}{
		{"own-1", said("a", "b"), "[a b]"},
		{"own-2", said("a", "b", "own-1"), "[]"},
		{"own-3", said("a", "b", "own-1", "c", "own-2", "d"), "[c d]"},
		{"own-4", append([]core.Turn{{Role: core.RoleAssistant, Text: "answered in the client"}}, said("d", "own-3")...), "[]"},
		{"own-5", said("f", "own-4", "g"), "[f g]"}, // the history has lost what the remote knows
	} {
		if got := a.asksAfter(f, step.task, step.history); got != step.want {
			t.Errorf("%s: the remote was told of %s, want %s", step.task, got, step.want)
		}
	}
	a.stop()
	<-a.over
	again := run(t, client.Options{URL: f.URL, Sessions: log}) // after a restart of the hub
	if got, want := again.asksAfter(f, "own-6", said("b", "own-1", "c")), "[c]"; got != want {
		t.Errorf("after a restart the remote was told of %s, want %s", got, want)
	}
}

func TestWhatWasSaidIsToldAgainAfterAMessageThatTheRemoteRefused(t *testing.T) {
	refuses := false
	f := remote(t, map[string]func(*exchange){"SendStreamingMessage": func(x *exchange) {
		if refuses {
			x.fails(-32603, "not now")
			return
		}
		x.say(task("WORKING"), chunk("ok"), status("COMPLETED"))
	}})
	a := run(t, client.Options{URL: f.URL})
	a.asksAfter(f, "own-1", nil)
	refuses = true
	c := newTurn(t, "x")
	c.id, c.request.History = "own-2", said("own-1", "a")
	if err := a.work(c); err == nil {
		t.Error("Work: got no error, want the refusal")
	}
	refuses = false
	if got, want := a.asksAfter(f, "own-3", said("own-1", "a")), "[a]"; got != want {
		t.Errorf("the remote was told of %s, want %s", got, want)
	}
}
