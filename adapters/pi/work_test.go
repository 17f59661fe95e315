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
		s.engine.Lock()
		s.lists.Add(func(context.Context) { <-t.Context().Done() })
		s.engine.Unlock()
		for range 3 {
			c.fails(`{"type":"list_stored_sessions"}`, "Command 'list_stored_sessions' timed out after 1000ms")
		}
		c.fails(`{"type":"switch_session_file","sessionId":"s","sessionPath":"`+path+`"}`, "Command 'switch_session_file' timed out after 1000ms")
		c.ok(`{"type":"set_session_name","sessionId":"s","name":"its lane goes on"}`)
		s.engine.Lock()
		if got := s.lists.Len(); got != 0 {
			t.Errorf("lists: got %d that wait, want none", got)
		}
		for _, j := range s.jobs.Waiting {
			if j.X != nil {
				t.Errorf("got %s waiting for the disk, want nothing", j.X.Kind)
			}
		}
		s.engine.Unlock()
		letGo()
	})
}
