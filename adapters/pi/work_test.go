package pi

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// A disk that hangs lets commands pile up that nobody waits for any more.
func TestWhatTookTooLongBeforeItsTurnAtTheDiskIsNotDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newStage(t, Options{SessionDir: t.TempDir(), CommandTimeout: time.Second, PromptTimeout: time.Second})
		join(t, h, core.Card{ID: "x"}, echo)
		c := dial(t, s, ConnOptions{})
		c.open("s", "x")
		c.ok(`{"type":"prompt","sessionId":"s","message":"one"}`)
		synctest.Wait()
		path := fileOf(c, "s")
		letGo := stuckDisk(t, s)
		s.mu.Lock()
		s.lists.add(func(context.Context) { <-t.Context().Done() })
		s.mu.Unlock()
		for range 3 {
			c.fails(`{"type":"list_stored_sessions"}`, "Command 'list_stored_sessions' timed out after 1000ms")
		}
		c.fails(`{"type":"switch_session_file","sessionId":"s","sessionPath":"`+path+`"}`, "Command 'switch_session_file' timed out after 1000ms")
		c.ok(`{"type":"set_session_name","sessionId":"s","name":"its lane goes on"}`)
		s.mu.Lock()
		if got := s.lists.len(); got != 0 {
			t.Errorf("lists: got %d that wait, want none", got)
		}
		for _, j := range s.jobs.waiting {
			if j.x != nil {
				t.Errorf("got %s waiting for the disk, want nothing", j.x.kind)
			}
		}
		s.mu.Unlock()
		letGo()
	})
}
