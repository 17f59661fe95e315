package e2e

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
)

// toldAtOnce is the setting after which ends no longer wait for a journal that takes
// nothing, so that a test may ask on.
const toldAtOnce = "DRAGOMAN_JOURNAL_LAG"

// keeps has an agent named keeper answer every request at the hub until the test ends.
func (h *served) keeps(t *testing.T) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	in, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		card := core.Card{ID: "keeper", MaxConcurrent: 2}
		ended <- service.Joins()[coven.Name](ctx, client.Hub{GRPC: h.grpc}, card, func(_ context.Context, r core.Request, say func(core.Body) error) error {
			return say(core.Text{Text: "to " + r.Content})
		}, func(client.AskFunc) { close(in) }, slog.New(slog.DiscardHandler))
	}()
	t.Cleanup(func() {
		leave()
		<-ended
	})
	select {
	case <-in:
	case <-time.After(watchdog):
		t.Fatal("the agent did not join")
	}
}

// asks asks the keeper, is told done, and returns the task.
func (h *served) asks(t *testing.T, content string) core.TaskID {
	t.Helper()
	var told struct {
		ID    core.TaskID
		State string
	}
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	if err := h.Client.Post(ctx, "/v1/tasks?wait=true", map[string]string{"to": "keeper", "content": content}, &told); err != nil || told.State != "done" {
		t.Fatalf("asking: got %+v and %v, want it done", told, err)
	}
	return told.ID
}

// ready returns what /readyz answers.
func (h *served) ready(t *testing.T) (status int, text string) {
	t.Helper()
	resp, err := http.Get(h.URL + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// turns waits until /readyz answers with the status, and returns its words. Until then
// it does what else is given.
func (h *served) turns(t *testing.T, status int, meanwhile func()) string {
	t.Helper()
	for late := time.After(watchdog); ; {
		got, text := h.ready(t)
		if got == status {
			return text
		}
		if meanwhile != nil {
			meanwhile()
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-late:
			t.Fatalf("/readyz: got %d %q, want %d at last", got, text, status)
		}
	}
}

// journal returns what GET /v1/hub tells of the journal.
func (h *served) journal(t *testing.T) (v struct {
	State, Reason string
	Since         time.Time
},
) {
	t.Helper()
	var all struct{ Journal any }
	all.Journal = &v
	if err := h.Get(t.Context(), "/v1/hub", &all); err != nil {
		t.Fatal(err)
	}
	return v
}

// stop interrupts the hub and returns what it said until it had ended, and how long
// that took.
func (h *served) stop(t *testing.T) (said string, code int, took time.Duration) {
	t.Helper()
	start := time.Now()
	if err := h.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-h.mute
	_ = h.cmd.Wait() // the code tells
	return h.said.String(), h.cmd.ProcessState.ExitCode(), time.Since(start)
}

// A disk was full and has room again: what was told as done meanwhile is recorded
// without a restart, nothing of it is lost when the hub is killed then, and whoever
// looks is told how the journal is.
func TestFullDiskLosesWhatWasToldAsDone(t *testing.T) {
	coretest.OnDisk(t, func(t *testing.T, disk *coretest.Disk) {
		t.Setenv(toldAtOnce, "1h")
		dir := filepath.Join(disk.Dir, "data")
		first := serveProgram(t, dir, "interval")
		first.keeps(t)
		if status, text := first.ready(t); status != http.StatusOK || first.journal(t).State != "ok" {
			t.Errorf("before: got %d %q and %+v, want it ready", status, text, first.journal(t))
		}
		all := []core.TaskID{first.asks(t, "before")}

		disk.Fill(t, 0)
		text := first.turns(t, http.StatusServiceUnavailable, func() { all = append(all, first.asks(t, strings.Repeat("x", 8<<10))) })
		const reason = "cannot be written to"
		if !strings.Contains(text, "the data directory "+dir) || !strings.Contains(text, reason) {
			t.Errorf("/readyz on a full disk: got %q, want why", text)
		}
		for range 30 {
			all = append(all, first.asks(t, "while it is full"))
		}
		if got := first.journal(t); got.State != "failing" || got.Reason+"\n" != text || time.Since(got.Since) > watchdog {
			t.Errorf("GET /v1/hub on a full disk: got %+v, want it failing, and why", got)
		}

		disk.Free(t)
		first.turns(t, http.StatusOK, nil)
		var told struct {
			ID      core.TaskID
			Receipt core.Receipt
		}
		first.post(t, "/v1/tasks?wait=true", "after", &told)
		if told.Receipt.Stage != core.StageRecorded {
			t.Fatalf("once there is room: got the receipt %+v, want recorded", told.Receipt)
		}
		all = append(all, told.ID)
		first.kill()
		for said, want := range map[string]int{"the journal takes no records": 1, "the journal takes records again": 1, reason: 1} {
			if got := strings.Count(first.said.String(), said); got != want {
				t.Errorf("got %q %d times in the log, want it %d times:\n%s", said, got, want, first.said)
			}
		}

		second := serveProgram(t, dir, "interval")
		for _, id := range all {
			var task struct{ State string }
			if err := second.Get(t.Context(), "/v1/tasks/"+string(id), &task); err != nil || task.State != "done" {
				t.Errorf("task %s after a restart: got %+v and %v, want it done", id, task, err)
			}
		}
	})
}

func TestAStopOnAFullDiskSaysWhatIsLost(t *testing.T) {
	coretest.OnDisk(t, func(t *testing.T, disk *coretest.Disk) {
		t.Setenv(toldAtOnce, "1h")
		h := serveProgram(t, filepath.Join(disk.Dir, "data"), "interval")
		h.keeps(t)
		disk.Fill(t, 0)
		h.turns(t, http.StatusServiceUnavailable, func() { h.asks(t, strings.Repeat("x", 8<<10)) })
		for range 5 {
			h.asks(t, "x")
		}
		said, code, took := h.stop(t)
		if code != command.ExitFailed || !strings.Contains(said, "since they are not recorded: ") || took > 9*time.Second {
			t.Errorf("got exit code %d after %v, want %d, soon, and how many tasks are not recorded:\n%s", code, took, command.ExitFailed, said)
		}
	})
}

// A data directory is taken away under a hub: nothing more is told as recorded, and it
// is noticed though nothing happens. When the same one comes back the hub goes on.
func TestRecordedInADirectoryThatWasRemoved(t *testing.T) {
	t.Setenv(toldAtOnce, "1h")
	dir := filepath.Join(t.TempDir(), "data")
	first := serveProgram(t, dir, "interval")
	first.keeps(t)
	all := []core.TaskID{first.asks(t, "before")}
	gone := "the data directory " + dir + " was removed or replaced"

	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); !strings.Contains(first.said.String(), gone); {
		if time.Since(start) > 5*time.Second {
			t.Fatalf("got nothing of it in the log in 5 s:\n%s", first.said)
		}
		<-time.After(20 * time.Millisecond)
	}
	if status, text := first.ready(t); status != http.StatusServiceUnavailable || !strings.Contains(text, gone) || !strings.Contains(text, "stop the hub, restore the directory") {
		t.Errorf("/readyz: got %d %q, want 503, why, and what to do", status, text)
	}
	if got := first.journal(t); got.State != "failing" || !strings.Contains(got.Reason, gone) {
		t.Errorf("GET /v1/hub: got %+v, want it failing, and why", got)
	}
	all = append(all, first.asks(t, "while it is away"))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	var told struct{ Receipt core.Receipt }
	if err := first.Client.Post(ctx, "/v1/tasks", map[string]string{"to": "keeper", "content": "x", "receipt": "recorded"}, &told); err == nil {
		t.Errorf("got the receipt %+v, want none that says recorded", told.Receipt)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("got the directory made again, want it left alone")
	}

	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	first.turns(t, http.StatusOK, nil)
	if got := strings.Count(first.said.String(), gone); got != 1 {
		t.Errorf("got it %d times in the log, want once:\n%s", got, first.said)
	}
	if said, code, _ := first.stop(t); code != 0 {
		t.Errorf("stopping: got exit code %d, want 0:\n%s", code, said)
	}

	second := serveProgram(t, dir, "interval")
	for _, id := range all {
		var task struct{ State string }
		if err := second.Get(t.Context(), "/v1/tasks/"+string(id), &task); err != nil || task.State != "done" {
			t.Errorf("task %s after a restart: got %+v and %v, want it done", id, task, err)
		}
	}
	second.keeps(t)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if text := second.turns(t, http.StatusServiceUnavailable, nil); !strings.Contains(text, gone) {
		t.Errorf("/readyz: got %q, want why", text)
	}
	second.asks(t, "lost")
	if said, code, took := second.stop(t); code != command.ExitFailed || !strings.Contains(said, "since they are not recorded: 1") || took > 9*time.Second {
		t.Errorf("got exit code %d after %v, want %d, soon, and how many tasks are not recorded:\n%s", code, took, command.ExitFailed, said)
	}
}
