package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster"
)

// legacy is what was done at a hub, and has to be found at every hub from then on.
type legacy struct {
	of     *clusterHub
	asked  []core.TaskID // two in one thread, and one alone
	turns  int           // of that thread, at least; half as many of the other
	notice core.TaskID
	audit  string
}

// A hub that was alone brings its journal along. From then on it outlives a restart of all, the disk of
// one hub, a hub that is gone for good, and all disks if there are copies of them.
func TestTheJournalOfAHubOutlivesIt(t *testing.T) {
	t.Parallel()
	hubs := newCluster(t, 4)
	a, b, c, d := hubs[0], hubs[1], hubs[2], hubs[3]
	peers := strings.Join([]string{a.route, b.route, c.route}, ",")
	for _, h := range hubs[:3] {
		h.args[len(h.args)-1] = peers
	}
	all := hubs[:3]
	var left []*legacy
	found := func(when string) {
		t.Helper()
		for _, of := range left {
			for _, at := range all {
				at.untilFound(t, when, of)
			}
		}
	}

	clustered, settings := a.args, a.settings()
	const named, joins = 3, 6 // how many arguments begin it with its name, and end it with its cluster
	a.args = append([]string{"serve", "--config", a.config("journal: {name: a}\n")}, clustered[named:len(clustered)-joins]...)
	a.start()
	a.untilReady()
	left = append(left, a.leaveLegacy(t))
	if code := a.interrupt(); code != 0 {
		t.Fatalf("stopping the hub alone: got the exit code %d, want 0", code)
	}
	a.args = clustered
	a.config(settings)
	all.start()
	found("it has grown to three")

	left = append(left, b.leaveLegacy(t), c.leaveLegacy(t))
	all.killAll()
	all.start()
	found("all were killed and started again")

	c.kill()
	c.loseDisk()
	c.start()
	all.untilAllUp()
	found("c has lost its disk")
	left = append(left, c.leaveLegacy(t))

	c.kill()
	a.untilHubs("c is taken over", func(hubs []cluster.Hub) bool { return stateOf(hubs, "c").TakenBy != nil })
	if code, _, stderr := run(t, "hubs", "forget", "c", "--hub", a.URL); code != command.ExitDone {
		t.Errorf("forgetting c: got %d and %q, want it forgotten", code, stderr)
	}
	for _, one := range left {
		if one.of == c {
			one.audit = "" // it can be read once c is back
		}
	}
	d.start()
	all = hubCluster{a, b, d}
	all.untilAllUp()
	found("d has come in place of c")

	for _, h := range all {
		if code, _, stderr := run(t, "drain", "--hub", h.URL); code != command.ExitDone {
			t.Errorf("draining %s for its backup: got %d and %q, want it empty", h.name, code, stderr)
		}
		if code := h.interrupt(); code != 0 {
			t.Errorf("stopping %s for its backup: got the exit code %d, want 0", h.name, code)
		}
		if err := os.CopyFS(filepath.Join(h.dir, "backup"), os.DirFS(h.data())); err != nil {
			t.Fatal(err)
		}
		h.start()
		all.untilAllUp()
	}
	all.killAll()
	for _, h := range all {
		h.loseDisk()
		if err := os.Rename(filepath.Join(h.dir, "backup"), h.data()); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range left {
		if one.of == c {
			one.turns = 0 // those who had heard its conversations have forgotten them
		}
	}
	all.start()
	found("all disks were replaced by their backups")
}

// settings returns the settings of the hub.
func (h *clusterHub) settings() string {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.dir, "dragoman.yaml"))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(text)
}

func (h *clusterHub) data() string { return filepath.Join(h.dir, "data") }

// loseDisk removes what a hub that does not run has stored.
func (h *clusterHub) loseDisk() {
	h.t.Helper()
	if err := os.RemoveAll(h.data()); err != nil {
		h.t.Fatal(err)
	}
}

// killAll kills all hubs.
func (c hubCluster) killAll() {
	for _, h := range c {
		h.kill()
	}
}

// leaveLegacy has an agent at the hub answer two questions of a thread and one alone, and take a notice.
func (h *clusterHub) leaveLegacy(t *testing.T) *legacy {
	t.Helper()
	joinWorker(t, h, core.AgentID("worker-"+h.name)) // until the hub ends
	l := &legacy{of: h, turns: 4}
	to, thread := "worker-"+h.name, "thread-"+h.name
	for _, in := range []string{thread, thread, ""} {
		var task struct {
			ID    core.TaskID
			State string
		}
		if err := h.Post(t.Context(), "/v1/tasks?wait=true", map[string]string{"to": to, "thread": in, "content": "hello", "receipt": "recorded"}, &task); err != nil || task.State != "done" {
			t.Fatalf("a question at %s: got %+v and %v, want it done", h.name, task, err)
		}
		l.asked = append(l.asked, task.ID)
	}
	var notice struct {
		ID    core.TaskID
		State string
	}
	if err := h.Post(t.Context(), "/v1/notices?wait=true", map[string]string{"to": to, "topic": "door.open"}, &notice); err != nil {
		t.Fatal(err)
	}
	l.notice = notice.ID
	h.until("the notice is in the audit of "+h.name, func() error {
		l.audit = h.auditOf(t, "") // its own
		return notYet(strings.Contains(l.audit, string(notice.ID)), "it is not")
	})
	return l
}

// auditOf returns the audit of a hub of the cluster, or of this one if the name is "", as this one tells it;
// "" if it cannot.
func (h *clusterHub) auditOf(t *testing.T, name string) string {
	t.Helper()
	code, text := said(t, h, http.MethodGet, "/v1/audit?hub="+name, "")
	if code != http.StatusOK {
		return ""
	}
	return text
}

// untilFound waits until the hub tells all of a legacy.
func (h *clusterHub) untilFound(t *testing.T, when string, l *legacy) {
	t.Helper()
	h.until(fmt.Sprintf("%s: hub %s tells what was done at %s", when, h.name, l.of.name), func() error { return h.finds(t, l) })
}

func (h *clusterHub) finds(t *testing.T, l *legacy) error {
	t.Helper()
	ctx := t.Context()
	var notice struct{ Notice *core.Notice }
	if err := h.Get(ctx, "/v1/tasks/"+string(l.notice), &notice); err != nil {
		return err
	} else if notice.Notice == nil || notice.Notice.Topic != "door.open" {
		return fmt.Errorf("the notice: got %+v", notice)
	}
	for _, id := range l.asked {
		var task struct {
			State  string
			Answer struct{ Text string }
		}
		if err := h.Get(ctx, "/v1/tasks/"+string(id), &task); err != nil {
			return err
		} else if task.State != "done" || task.Answer.Text != "HELLO" {
			return fmt.Errorf("task %s: got %+v", id, task)
		}
	}
	for id, want := range map[string]int{"thread-" + l.of.name: l.turns, string(l.asked[2]): l.turns / 2} {
		var thread struct{ Turns []core.Turn }
		if err := h.Get(ctx, "/v1/threads/"+id, &thread); err != nil {
			return err
		} else if len(thread.Turns) < want {
			return fmt.Errorf("the thread %s: got %d turns, want %d", id, len(thread.Turns), want)
		}
	}
	if got := h.auditOf(t, l.of.name); !strings.HasPrefix(got, l.audit) {
		return fmt.Errorf("the audit: got %q, want it to begin with %q", got, l.audit)
	}
	return nil
}
