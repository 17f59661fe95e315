package hub_test

import (
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

func TestAFollowerIsShownTheTasksThatOthersOpen(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker, follower := g.agent("a", able), g.connect("r"), g.connect("r")
		follower.Follow("talk", "mine")
		asked := g.open(asker, core.Request{To: core.ToAgent("a"), Thread: "talk", Content: "hello"})
		g.report(agent, asked, core.Text{Text: "hi"}, core.Done{})
		b, _ := g.batch(follower)
		if b.Tag != "mine" || b.Task != asked || b.Role != task.Viewer {
			t.Errorf("got tag %v, task %p, role %v; want mine, %p, a viewer", b.Tag, b.Task, b.Role, asked)
		}
		g.wantKinds("what the follower is shown", append(b.Events, g.events(follower)...), "opened", "assigned", "text", "done")

		elsewhere := g.open(asker, core.Request{To: core.ToAgent("a"), Thread: "other", Content: "hello"})
		g.report(agent, elsewhere, core.Done{})
		g.wantKinds("of another thread", g.events(follower))

		follower.Unfollow("talk")
		later := g.open(asker, core.Request{To: core.ToAgent("a"), Thread: "talk", Content: "again"})
		g.report(agent, later, core.Done{})
		g.wantKinds("after it had enough", g.events(follower))
	})
}

func TestAFollowerReadsItsOwnTasksOnce(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		asker.Follow("talk", "mine")
		task := g.open(asker, core.Request{To: core.ToAgent("a"), Thread: "talk", Content: "hello"})
		g.report(agent, task, core.Done{})
		g.wantKinds("what it is told", g.events(asker), "opened", "assigned", "done")
		if _, err := asker.Open(core.Request{To: core.ToAgent("a"), Thread: "talk", Content: "hello"}, hub.OpenOptions{Unwatched: true}); err != nil {
			t.Fatal(err)
		}
		g.wantKinds("what it is told of what it does not watch", g.events(asker))
	})
}

func TestFollowingAThreadOfSomebodyElseShowsNothing(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent := g.agent("a", able)
		owner := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "owner", Authenticated: true}})
		defer owner.Close(nil)
		other := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "other", Authenticated: true}})
		defer other.Close(nil)
		other.Follow("talk", nil)
		task := g.open(owner, core.Request{To: core.ToAgent("a"), Thread: "talk", Content: "hello"})
		g.report(agent, task, core.Done{})
		g.wantKinds("what the other is shown", g.events(other))
	})
}
