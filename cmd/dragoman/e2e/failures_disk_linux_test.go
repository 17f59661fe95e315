package e2e

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

// readiness returns what /readyz answers.
func (h *servedHub) readiness(t *testing.T) (status int, text string) {
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

// waitReadiness waits until /readyz answers with the status, and returns its text. In between it
// calls meanwhile.
func (h *servedHub) waitReadiness(t *testing.T, status int, meanwhile func()) string {
	t.Helper()
	for late := time.After(watchdog); ; {
		got, text := h.readiness(t)
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

// journal returns what GET /v1/hub reports about the journal.
func (h *servedHub) journal(t *testing.T) (v struct {
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

// stop interrupts the hub and returns its log and its exit code.
func (h *servedHub) stop(t *testing.T) (printed string, code int) {
	t.Helper()
	if err := h.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-h.logDone
	_ = h.cmd.Wait() // the exit code is returned
	return h.log.String(), h.cmd.ProcessState.ExitCode()
}

// wantLoss fails the test unless a hub that was stopped has said how many tasks are lost, with why the
// journal refuses them: for a journal that refuses, a Recorder waits 2 s, and for one that does not
// answer, whose last error is another one, longer.
func wantLoss(t *testing.T, printed string, code int, why string) {
	t.Helper()
	_, said, is := strings.Cut(printed, "since they are not recorded: ")
	said, _, _ = strings.Cut(said, "\n")
	if code != command.ExitFailed || !is || !strings.Contains(said, why) || strings.Contains(said, context.Canceled.Error()) {
		t.Errorf("got exit code %d, want %d, how many tasks are not recorded, and %q:\n%s", code, command.ExitFailed, why, printed)
	}
}

// A disk was full and has space again. What was reported done before that was noticed is recorded without a
// restart and survives a kill, nothing is taken meanwhile, and readiness, GET /v1/hub and the log report the
// journal.
func TestFullDiskLosesTasksReportedDone(t *testing.T) {
	tier.Full(t, "it fills a disk")
	coretest.OnDisk(t, func(t *testing.T, disk *coretest.Disk) {
		t.Setenv(endsUnrecorded, "1h")
		dir := filepath.Join(disk.Dir, "data")
		first := serveHub(t, dir, "interval")
		first.startKeeper(t)
		if status, text := first.readiness(t); status != http.StatusOK || first.journal(t).State != "ok" {
			t.Errorf("before: got %d %q and %+v, want it ready", status, text, first.journal(t))
		}
		all := []core.TaskID{first.ask(t, "before")}

		disk.Fill(t, 0)
		text := first.waitReadiness(t, http.StatusServiceUnavailable, func() {
			if id := first.askFailing(t, strings.Repeat("x", 8<<10)); id != "" {
				all = append(all, id)
			}
		})
		const reason = "cannot be written to"
		if !strings.Contains(text, "the data directory "+dir) || !strings.Contains(text, reason) {
			t.Errorf("/readyz on a full disk: got %q, want why", text)
		}
		for range 30 {
			if id := first.askFailing(t, "while it is full"); id != "" {
				t.Errorf("on a full disk: got task %s taken, want it refused as /readyz is", id)
			}
		}
		if got := first.journal(t); got.State != "failing" || !strings.HasSuffix(text, ": "+got.Reason+"\n") || time.Since(got.Since) > watchdog {
			t.Errorf("GET /v1/hub on a full disk: got %+v, want it failing, and why", got)
		}

		disk.Free(t)
		first.waitReadiness(t, http.StatusOK, nil)
		var received struct {
			ID      core.TaskID
			Receipt core.Receipt
		}
		first.post(t, "/v1/tasks?wait=true", "after", &received)
		if received.Receipt.Stage != core.StageRecorded {
			t.Fatalf("with space again: got the receipt %+v, want recorded", received.Receipt)
		}
		all = append(all, received.ID)
		eventually(t, "the audit is written again", func() error { // it tries again after a while
			_, out, _ := run(t, "audit", "--json", "--limit", "0", "--act", "open", "--hub", first.URL)
			return notYet(strings.Contains(out, string(received.ID)), "it lacks the last entry")
		})
		if code, out, stderr := run(t, "audit", "--verify", "--hub", first.URL); code != command.ExitDone {
			t.Errorf("got %d, %s and %s, want the audit intact", code, out, stderr)
		}
		first.kill()
		for printed, want := range map[string]int{"the journal takes no records": 1, "the journal takes records again": 1, "the audit cannot be written": 1, "the audit is written again": 1, reason: 2} {
			if got := strings.Count(first.log.String(), printed); got != want {
				t.Errorf("got %q %d times in the log, want it %d times:\n%s", printed, got, want, first.log)
			}
		}

		second := serveHub(t, dir, "interval")
		for _, id := range all {
			var task struct{ State string }
			if err := second.Get(t.Context(), "/v1/tasks/"+string(id), &task); err != nil || task.State != "done" {
				t.Errorf("task %s after a restart: got %+v and %v, want it done", id, task, err)
			}
		}
		if code, out, stderr := run(t, "audit", "--verify", "--hub", second.URL); code != command.ExitDone || !strings.Contains(out, "could not be written: 0") {
			t.Errorf("got %d, %s and %s, want the audit intact over a full disk and a kill, with nothing dropped", code, out, stderr)
		}
		_, opened, _ := run(t, "audit", "--json", "--limit", "0", "--act", "open", "--hub", second.URL)
		for _, id := range all {
			if n := strings.Count(opened, string(id)); n != 1 {
				t.Errorf("task %s: got %d entries in the audit, want one", id, n)
			}
		}
	})
}

func TestStoppingOnAFullDiskReportsTheLoss(t *testing.T) {
	tier.Full(t, "it fills a disk")
	coretest.OnDisk(t, func(t *testing.T, disk *coretest.Disk) {
		t.Setenv(endsUnrecorded, "1h")
		h := serveHub(t, filepath.Join(disk.Dir, "data"), "interval")
		h.startKeeper(t)
		disk.Fill(t, 0)
		h.waitReadiness(t, http.StatusServiceUnavailable, func() { h.askFailing(t, strings.Repeat("x", 8<<10)) })
		printed, code := h.stop(t)
		wantLoss(t, printed, code, "cannot be written to")
	})
}

// The data directory of a running hub is moved away. Nothing is reported as recorded any more, and
// the hub notices without a write. It goes on when the same directory is back.
func TestRecordedInADirectoryThatWasRemoved(t *testing.T) {
	tier.Full(t, "it waits until a hub notices that its directory is gone")
	t.Setenv(endsUnrecorded, "1h")
	dir := filepath.Join(t.TempDir(), "data")
	first := serveHub(t, dir, "interval")
	first.startKeeper(t)
	all := []core.TaskID{first.ask(t, "before")}
	gone := "the data directory " + dir + " was removed or replaced"

	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the log says that it is gone", func() error { return notYet(strings.Contains(first.log.String(), gone), first.log.String()) })
	if status, text := first.readiness(t); status != http.StatusServiceUnavailable || !strings.Contains(text, gone) || !strings.Contains(text, "stop the hub, restore the directory") {
		t.Errorf("/readyz: got %d %q, want 503, why, and what to do", status, text)
	}
	if got := first.journal(t); got.State != "failing" || !strings.Contains(got.Reason, gone) {
		t.Errorf("GET /v1/hub: got %+v, want it failing, and why", got)
	}
	if id := first.askFailing(t, "while it is away"); id != "" {
		t.Errorf("got task %s taken, want it refused while the directory is away", id)
	}
	eventually(t, "the log says that the audit cannot be written", func() error {
		return notYet(strings.Contains(first.log.String(), "the audit cannot be written"), first.log.String())
	})
	if _, err := os.Stat(dir); err == nil {
		t.Error("got the directory made again, want it left alone")
	}

	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	first.waitReadiness(t, http.StatusOK, nil)
	for _, said := range []string{"the journal takes no records", "the audit cannot be written"} {
		if got := strings.Count(first.log.String(), said); got != 1 {
			t.Errorf("got %q %d times in the log, want once:\n%s", said, got, first.log)
		}
	}
	if printed, code := first.stop(t); code != 0 {
		t.Errorf("stopping: got exit code %d, want 0:\n%s", code, printed)
	}

	second := serveHub(t, dir, "interval")
	for _, id := range all {
		var task struct{ State string }
		if err := second.Get(t.Context(), "/v1/tasks/"+string(id), &task); err != nil || task.State != "done" {
			t.Errorf("task %s after a restart: got %+v and %v, want it done", id, task, err)
		}
	}
	second.startKeeper(t)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if text := second.waitReadiness(t, http.StatusServiceUnavailable, nil); !strings.Contains(text, gone) {
		t.Errorf("/readyz: got %q, want why", text)
	}
	if id := second.askFailing(t, "lost"); id != "" {
		t.Errorf("got task %s taken, want it refused while the directory is gone", id)
	}
}
