package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core/cluster"
)

func TestThreeHubsAreOneForTheirUsers(t *testing.T) {
	t.Parallel()
	all := startCluster(t, 3)
	gone := anAgentIsFoundAtAllHubs(t, all)
	talk := startTalk(t, all)
	talk.begin()
	movesOn := aTaskGoesOnElsewhere(t, all)
	all[1].kill()
	movesOn()
	gone()
	talk.withoutB()
	all[1].start()
	all.untilAllUp()
	talk.withBAgain()
	standsStill(t, all)
}

// An agent at b is asked at every hub, and is gone once b has died.
func anAgentIsFoundAtAllHubs(t *testing.T, all hubCluster) (gone func()) {
	t.Helper()
	a, b, c := all[0], all[1], all[2]
	ctx, leave := context.WithCancel(t.Context())
	go runWith(ctx, "", "agent", "--dialect", "coven", "--name", "shout", "--hub", b.URL, "--", "tr", "a-z", "A-Z")
	for _, h := range all {
		code, out, stderr := run(t, "ask", "shout", "hello", "--hub", h.URL, "--wait=2m")
		if code != command.ExitDone || out != "HELLO\n" {
			t.Errorf("asked at %s: got %d, %q and %q, want HELLO", h.name, code, out, stderr)
		}
	}
	return func() {
		defer leave()
		for _, h := range []*clusterHub{a, c} {
			h.untilHubs(h.name+" knows who has taken b over", func(hubs []cluster.Hub) bool {
				return len(hubs) == 3 && hubs[1].State == cluster.Gone && hubs[1].TakenBy != nil
			})
			if code, _, stderr := run(t, "ask", "shout", "hello", "--hub", h.URL); code != command.ExitFailed || !strings.Contains(stderr, "no agent") {
				t.Errorf("asked at %s after b has died: got %d and %q, want the agent gone", h.name, code, stderr)
			}
		}
		if code, out, _ := run(t, "hubs", "--hub", a.URL); code != command.ExitDone || !strings.Contains(out, "gone") {
			t.Errorf("dragoman hubs: got %d and %s, want b gone", code, out)
		}
	}
}

// A hub that stood still is taken over, and begins a new life.
func standsStill(t *testing.T, all hubCluster) {
	t.Helper()
	all[2].stop()
	var over uint64 // the life that is taken over: not the first one, if a busy machine was late before
	all[0].untilHubs("a knows that c is gone", func(hubs []cluster.Hub) bool {
		over = hubs[2].Epoch
		return hubs[2].State == cluster.Gone && hubs[2].TakenBy != nil
	})
	all[2].cont()
	all[0].untilHubs("c has begun another life", func(hubs []cluster.Hub) bool { return hubs[2].State == cluster.Up && hubs[2].Epoch > over })
	all.untilAllUp()
}
