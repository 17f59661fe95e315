package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
)

// answeredTask has an agent at the hub answer a question there, and returns the task.
func (h *clusterHub) answeredTask() (id core.TaskID) {
	h.t.Helper()
	agent := "answers-" + h.name
	left := make(chan struct{})
	ctx, leave := context.WithCancel(h.t.Context())
	go func() {
		defer close(left)
		runWith(ctx, "", "agent", "--name", agent, "--hub", h.URL, "--", "tr", "a-z", "A-Z")
	}()
	defer func() {
		leave()
		<-left
	}()
	h.until(agent+" has answered", func() error {
		var answer struct {
			ID    core.TaskID
			State string
		}
		err := h.Post(ctx, "/v1/tasks?wait=true", map[string]string{"to": agent, "content": "hello", "receipt": "recorded"}, &answer)
		if id = answer.ID; err == nil && answer.State != "done" {
			return fmt.Errorf("got %+v", answer)
		}
		return err
	})
	return id
}

// untilAnswered waits until the hub says what was answered.
func (h *clusterHub) untilAnswered(what string, tasks ...core.TaskID) {
	h.t.Helper()
	for _, id := range tasks {
		h.until(what+": hub "+h.name+" has the answer of "+string(id), func() error {
			var task struct {
				State  string
				Answer struct{ Text string }
			}
			if err := h.Get(h.t.Context(), "/v1/tasks/"+string(id), &task); err != nil {
				return err
			}
			if task.State != "done" || task.Answer.Text != "HELLO" {
				return fmt.Errorf("got %+v", task)
			}
			return nil
		})
	}
}

func (h *clusterHub) data() string { return filepath.Join(h.dir, "data") }

// The journal of a cluster outlives a restart of all, the disk of one hub, and all disks if there are
// copies of them.
func TestTheJournalOfAClusterOutlivesItsHubs(t *testing.T) {
	all := startCluster(t, 3)
	b, c := all[1], all[2]
	tasks := []core.TaskID{b.answeredTask(), c.answeredTask()}

	for _, h := range all {
		h.kill()
	}
	all.start()
	b.untilAnswered("after a restart of all", tasks[0])
	c.untilAnswered("after a restart of all", tasks[1])

	c.kill()
	if err := os.RemoveAll(c.data()); err != nil {
		t.Fatal(err)
	}
	c.start()
	all.untilAllUp()
	c.untilAnswered("after it has lost its disk", tasks[1])

	copies := map[*clusterHub]string{}
	for _, h := range all {
		if code := h.interrupt(); code != 0 {
			t.Errorf("stopping hub %s for its backup: got the exit code %d, want 0", h.name, code)
		}
		copies[h] = filepath.Join(h.dir, "backup")
		if err := os.CopyFS(copies[h], os.DirFS(h.data())); err != nil {
			t.Fatal(err)
		}
		h.start()
		all.untilAllUp()
	}
	for h := range copies {
		h.kill()
	}
	for h, backup := range copies {
		if err := os.RemoveAll(h.data()); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(backup, h.data()); err != nil {
			t.Fatal(err)
		}
	}
	all.start()
	b.untilAnswered("from the backups", tasks[0])
	c.untilAnswered("from the backups", tasks[1])
}

// A hub that was alone brings its journal along, and its tasks are found at each hub.
func TestAHubAloneGrowsToThree(t *testing.T) {
	all := newCluster(t, 3)
	a := all[0]
	clustered, settings := a.args, filepath.Join(a.dir, "dragoman.yaml")
	of, err := os.ReadFile(settings)
	if err != nil {
		t.Fatal(err)
	}
	a.args = nil
	for i := 0; i < len(clustered); i++ {
		switch arg := clustered[i]; arg {
		case "--hub-name", "--config", "--cluster-listen", "--cluster-peers":
			i++
		default:
			a.args = append(a.args, arg)
		}
	}
	a.args = append(a.args, "--config", a.config("journal: {name: a}\n")) // the name that it is to have
	a.start()
	a.untilReady()
	before := a.answeredTask()
	if code := a.interrupt(); code != 0 {
		t.Fatalf("stopping the hub: got the exit code %d, want 0", code)
	}
	a.args = clustered
	a.config(string(of))
	all.start()
	for _, h := range all {
		h.untilAnswered("in the cluster", before)
	}
}
