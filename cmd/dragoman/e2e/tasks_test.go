package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
	corehub "github.com/dragoman-hub/dragoman/core/hub"
)

func TestTasksAreListedAndShownOnTheCommandLine(t *testing.T) {
	h := newTestHub(t, nil)
	h.startAgent(t, coven.Name, "guide", 1)
	var keys []string
	for range 3 {
		keys = append(keys, h.key())
		if code, _, errs := h.run(t, "ask", "guide", "say "+keys[len(keys)-1]); code != command.ExitDone {
			t.Fatalf("asking: got %d and %s", code, errs)
		}
	}
	failed := h.key()
	h.run(t, "ask", "guide", "fail "+failed+" overloaded")
	rows := func(args ...string) (content []string) {
		t.Helper()
		code, out, errs := h.run(t, append([]string{"tasks"}, args...)...)
		if code != command.ExitDone {
			t.Fatalf("%v: got %d and %s", args, code, errs)
		}
		for i, row := range strings.Split(strings.TrimSpace(out), "\n") {
			if i > 0 {
				cells := regexp.MustCompile(` {2,}`).Split(row, -1)
				content = append(content, cells[1]+" "+cells[2]+" "+cells[len(cells)-1])
			}
		}
		return content
	}
	all := []string{"failed (overloaded) guide fail " + failed + " overloaded"}
	for i := range keys {
		all = append(all, "done guide say "+keys[len(keys)-1-i])
	}
	if d := cmp.Diff(all, rows()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff(all[1:], rows("--state", "done", "--agent", "guide", "--limit", "0")); d != "" {
		t.Errorf("those that are done (-want +got):\n%s", d)
	}
	_, out, errs := h.run(t, "tasks", "--limit", "1", "--json")
	var list struct {
		Tasks  []struct{ ID, Content string }
		Before string
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Tasks) != 1 || list.Before != list.Tasks[0].ID {
		t.Fatalf("got %s and %s, want the newest and where to go on", out, errs)
	}
	if d := cmp.Diff(all[1:], rows("--before", list.Before)); d != "" {
		t.Errorf("older ones (-want +got):\n%s", d)
	}
	_, out, _ = h.run(t, "tasks", "--state", "done", "--limit", "1", "--json")
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	code, out, _ := h.run(t, "tasks", list.Tasks[0].ID)
	if code != command.ExitDone || !strings.Contains(out, "say "+keys[2]) || !strings.Contains(out, shortAnswer(keys[2])) || !strings.Contains(out, "done") {
		t.Errorf("got %d and %s, want what was asked and answered", code, out)
	}
	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"tasks", "--state", "over"}, command.ExitUsage, `--state "over": use one of queued, running, done, failed, cancelled`},
		{[]string{"tasks", "--before", "over"}, command.ExitUsage, "?before=over"},
		{[]string{"tasks", "--cause", "me"}, command.ExitUsage, "?cause=me"},
		{[]string{"tasks", "--cause", list.Tasks[0].ID}, command.ExitDone, "no tasks match"},
		{[]string{"tasks", "--limit", "-1"}, command.ExitUsage, "--limit -1"},
		{[]string{"tasks", "no-such-task"}, command.ExitFailed, "no task no-such-task is here for you"},
		{[]string{"tasks", "--state", "running"}, command.ExitDone, "no tasks match"},
		{[]string{"approve", "no-such-task"}, command.ExitFailed, "no task no-such-task is here for you"},
		{[]string{"deny", "no-such-task", "call"}, command.ExitFailed, "no task no-such-task is here for you"},
		{[]string{"approve", list.Tasks[0].ID}, command.ExitFailed, "no approval is waiting for this task"},
	} {
		if code, _, errs := h.run(t, tt.args...); code != tt.code || !strings.Contains(errs, tt.says) {
			t.Errorf("%v: got %d and %q, want %d and %q", tt.args, code, errs, tt.code, tt.says)
		}
	}
}

func TestAgentsListsAllPages(t *testing.T) {
	h := newTestHub(t, nil)
	const many = client.AgentsPage + 7
	host := h.service.Hub()
	for i := range many {
		a := host.Connect(corehub.Identity{Principal: core.Principal{ID: "host"}})
		t.Cleanup(func() { a.Close(nil) })
		if err := a.Join(core.Card{ID: core.AgentID(fmt.Sprintf("agent-%04d", i)), Capabilities: []string{"chat"}, MaxConcurrent: 2}, corehub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if code, out, _ := h.run(t, "agents"); code != command.ExitDone || strings.Count(out, "\nagent-") != many {
		t.Errorf("got %d and %d agents, want %d", code, strings.Count(out, "\nagent-"), many)
	}
	_, out, _ := h.run(t, "agents", "--json")
	var list struct{ Agents []struct{ ID string } }
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Agents) != many || list.Agents[many-1].ID != "agent-0506" {
		t.Errorf("got %d agents and %v, want all %d by id", len(list.Agents), err, many)
	}
	code, one, _ := h.run(t, "agents", "agent-0003")
	lines := strings.Split(strings.TrimSpace(one), "\n")
	if code != command.ExitDone || len(lines) != 2 || !strings.HasPrefix(lines[0], "ID ") || !strings.HasPrefix(lines[1], "agent-0003 ") || !strings.Contains(lines[1], "0/2") {
		t.Errorf("got %d and %s, want a table of one", code, one)
	}
	if _, asJSON, _ := h.run(t, "agents", "agent-0003", "--json"); !strings.Contains(asJSON, `"id": "agent-0003"`) {
		t.Errorf("got %s, want JSON", asJSON)
	}
}
