//go:build unix

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// All hubs have the same webhook. Whichever hub was asked, the one that has the task tells its end, and after its death
// the one that has taken the task over, once.
func TestAWebhookIsToldByTheHubThatHasATask(t *testing.T) {
	url, got := webhookEnd(t)
	all := newCluster(t, 3)
	for _, h := range all {
		h.addConfig(fmt.Sprintf("notify:\n  webhooks:\n    - {url: %q, on: [ended, failed]}\n", url))
	}
	all.start()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	for _, agent := range []struct{ name, command, hub string }{{"shout", "tr a-z A-Z", all[1].URL}, {"slow", "echo begun; exec sleep 1000", all[1].URL}, {"other", "cat", all[2].URL}} {
		go runWith(ctx, "", "agent", "--name", agent.name, "--hub", agent.hub, "--", "sh", "-c", agent.command)
		for _, h := range all {
			h.until(agent.name+" is known", func() error {
				code, out, _ := run(t, "agents", agent.name, "--hub", h.URL)
				return notYet(code == 0, out)
			})
		}
	}

	told := map[string][]notified{}
	// untilTold waits for the end of a task of an agent, and keeps all that is told meanwhile.
	untilTold := func(agent string) (n notified) {
		t.Helper()
		for n.Data.Agent != agent {
			n = <-got
			told[n.Data.Task] = append(told[n.Data.Task], n)
		}
		return n
	}
	ask := func(h *clusterHub, agent string) notified {
		t.Helper()
		if code, _, stderr := run(t, "ask", agent, "hello", "--hub", h.URL); code != 0 {
			t.Fatalf("%s at hub %s: got %d and %s, want an answer", agent, h.name, code, stderr)
		}
		return untilTold(agent)
	}
	if n := ask(all[0], "shout"); n.Type != "ended" || !strings.HasPrefix(n.URL, all[1].URL+"/") {
		t.Errorf("got %+v, want the end told by hub b, which has the task", n)
	}

	code, begun, stderr := run(t, "delegate", "slow", "go", "--hub", all[0].URL)
	if code != 0 {
		t.Fatalf("delegate: got %d, %s and %s, want a task", code, begun, stderr)
	}
	all[0].until("the agent has the task", func() error {
		_, out, _ := run(t, "tasks", "--state", "running", "--hub", all[0].URL)
		return notYet(strings.Contains(out, "slow"), out)
	})
	all[1].kill()
	n := untilTold("slow")
	if n.Type != "failed" || strings.HasPrefix(n.URL, all[1].URL+"/") {
		t.Errorf("got %+v, want the failure told by the hub that has taken the task over", n)
	}
	all[1].start()
	all.untilAllUp()
	for _, h := range all { // whatever was to be told again has been by then
		ask(h, "other")
		h.until("shout is back", func() error {
			code, out, _ := run(t, "agents", "shout", "--hub", h.URL)
			return notYet(code == 0, out)
		})
		ask(h, "shout")
	}
	for id, of := range told {
		if len(of) != 1 {
			t.Errorf("task %s: got %+v, want it told once", id, of)
		}
	}
	if len(told) != 8 {
		t.Errorf("got %d tasks told, want all 8", len(told))
	}
}
