package pi_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core"
)

// Commands that have timed out pile up behind a hanging disk.
func TestACommandThatTimedOutBeforeItsJobIsNotExecuted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newServer(t, pi.Options{Commands: command.Options{CommandTimeout: time.Second, PromptTimeout: time.Second}, SessionDir: t.TempDir()})
		joinAgent(t, h, core.Card{ID: "x"}, echoAgent)
		c := dial(t, s, pi.ConnOptions{})
		c.open("s", "x")
		c.ok(`{"type":"prompt","sessionId":"s","message":"one"}`)
		synctest.Wait()
		path := fileOf(c, "s")
		parts := s.Parts()
		defer stall(parts.Disk, command.Workers)()
		defer stall(parts.Lists, 1)()
		for range 3 {
			c.fails(`{"type":"list_stored_sessions"}`, "Command 'list_stored_sessions' timed out after 1000ms")
		}
		c.fails(`{"type":"switch_session_file","sessionId":"s","sessionPath":"`+path+`"}`, "Command 'switch_session_file' timed out after 1000ms")
		c.ok(`{"type":"set_session_name","sessionId":"s","name":"its lane goes on"}`)
		if got := parts.Lists.Len(); got != 0 {
			t.Errorf("lists: got %d waiting, want none", got)
		}
		if got := parts.Disk.Len(); got != 1 {
			t.Errorf("jobs: got %d waiting for the disk, want only the one that writes the name", got)
		}
	})
}
