package pi_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// afterOnePrompt creates a session s with one prompt, and returns the path of its file.
func afterOnePrompt(t *testing.T, opts pi.Options) (*testClient, *pi.Server, string) {
	t.Helper()
	h, s := newServer(t, opts)
	joinAgent(t, h, core.Card{ID: "x"}, echoAgent)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "x")
	c.ok(`{"type":"prompt","sessionId":"s","message":"one"}`)
	flush(s)
	return c, s, fileOf(c, "s")
}

func TestASymlinkInsteadOfAFileIsNotFollowed(t *testing.T) {
	for name, swap := range map[string]func(path, victim string) error{
		"of the file": func(path, victim string) error {
			return os.Symlink(victim, path)
		},
		"of its directory": func(path, victim string) error {
			if err := os.Remove(filepath.Dir(path)); err != nil {
				return err
			}
			return os.Symlink(filepath.Dir(victim), filepath.Dir(path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, s, path := afterOnePrompt(t, pi.Options{SessionDir: t.TempDir()})
			victim := filepath.Join(conversation.Resolve(t.TempDir()), filepath.Base(path))
			if err := os.WriteFile(victim, []byte("precious\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := swap(path, victim); err != nil {
				t.Fatal(err)
			}
			c.ok(`{"type":"prompt","sessionId":"s","message":"two"}`)
			flush(s)
			if got, err := os.ReadFile(victim); err != nil || string(got) != "precious\n" {
				t.Errorf("got %q and %v in a file that is not the session's, want it unchanged", got, err)
			}
			if got := len(messagesOf(t, c, "s")); got != 4 {
				t.Errorf("got %d messages in memory, want 4", got)
			}
		})
	}
}

func TestARemovedFileIsWrittenAgain(t *testing.T) {
	c, s, path := afterOnePrompt(t, pi.Options{SessionDir: t.TempDir()})
	c.ok(`{"type":"load_session","sessionPath":"` + path + `","sessionId":"t"}`)
	c.ok(`{"type":"prompt","sessionId":"t","message":"two"}`)
	flush(s)
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	c.ok(`{"type":"prompt","sessionId":"s","message":"three"}`)
	flush(s)
	f := readFile(t, path)
	if got, want := len(f.Entries), 7; got != want {
		t.Errorf("got %d entries, want those of both sessions: %d", got, want)
	}
	if got := len(conversation.FromFile(f).Context); got != 4 {
		t.Errorf("got %d messages on the latest branch, want 4", got)
	}
}

func TestSubscribersAreWarnedThatAFileCannotBeWritten(t *testing.T) {
	c, s, path := afterOnePrompt(t, pi.Options{SessionDir: t.TempDir()})
	c.ok(`{"type":"switch_session","sessionId":"s"}`)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil { // a directory instead of the file
		t.Fatal(err)
	}
	for range 2 {
		c.ok(`{"type":"prompt","sessionId":"s","message":"two"}`)
		flush(s)
	}
	if got := c.count(`"method":"notify"`, `"notifyType":"error"`, "cannot be written to its file"); got != 1 {
		t.Errorf("got %d warnings that the file cannot be written, want one", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	c.ok(`{"type":"prompt","sessionId":"s","message":"three"}`)
	c.until(`"method":"notify"`, `"notifyType":"info"`, "written to its file again")
	flush(s)
	if got := len(conversation.FromFile(readFile(t, path)).Context); got != 8 {
		t.Errorf("got %d messages in the file, want 8", got)
	}
}

func TestAClosingServerRetriesUnwrittenLines(t *testing.T) {
	for name, mended := range map[string]bool{"and can": true, "and cannot": false} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "sessions")
			if err := os.WriteFile(dir, nil, 0o600); err != nil { // a file instead of the directory
				t.Fatal(err)
			}
			var log strings.Builder
			h := coretest.NewHub(t, hub.Options{})
			s := pi.NewServer(h, pi.Options{Commands: command.Options{Rates: unlimited}, SessionDir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
			joinAgent(t, h, core.Card{ID: "x"}, echoAgent)
			c := dial(t, s, pi.ConnOptions{})
			c.open("s", "x")
			c.ok(`{"type":"prompt","sessionId":"s","message":"one"}`)
			flush(s)
			path := fileOf(c, "s")
			if mended {
				if err := os.Remove(dir); err != nil {
					t.Fatal(err)
				}
			}
			c.disconnect()
			s.Close()
			if mended {
				if got, want := kindsIn(readFile(t, path)), "model_change user assistant"; got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
			if got := strings.Contains(log.String(), "could not be written"); got == mended {
				t.Errorf("got the log\n%s\nwant lost lines in it: %v", log.String(), !mended)
			}
		})
	}
}

func TestASessionInADirectoryWithALongNameIsWritten(t *testing.T) {
	cwd := conversation.Resolve(t.TempDir())
	for range 5 {
		cwd = filepath.Join(cwd, strings.Repeat("é", 60))
	}
	if err := os.MkdirAll(cwd, 0o700); err != nil {
		t.Fatal(err)
	}
	h, s := newServer(t, pi.Options{SessionDir: t.TempDir()})
	joinAgent(t, h, core.Card{ID: "x"}, echoAgent)
	c := dial(t, s, pi.ConnOptions{})
	c.ok(`{"type":"create_session","sessionId":"s","agent":"x","cwd":"` + cwd + `"}`)
	c.ok(`{"type":"prompt","sessionId":"s","message":"one"}`)
	flush(s)
	if got := readFile(t, fileOf(c, "s")); got.Header.Cwd != cwd {
		t.Errorf("got cwd %q, want %q", got.Header.Cwd, cwd)
	}
	if f := c.ok(`{"type":"list_session_files","sessionId":"s"}`); !has(f, filepath.Base(fileOf(c, "s"))) {
		t.Errorf("got %s, want the file listed", f.Data)
	}
}

func TestASwitchThatTimedOutHasNoEffect(t *testing.T) {
	c, s, path := afterOnePrompt(t, pi.Options{Commands: command.Options{PromptTimeout: 100 * time.Millisecond}, SessionDir: t.TempDir()})
	c.ok(`{"type":"create_session","sessionId":"t"}`)
	release := stall(s.Parts().Disk, command.Workers)
	c.fails(`{"type":"switch_session_file","sessionId":"t","sessionPath":"`+path+`"}`, "Command 'switch_session_file' timed out after 100ms")
	release()
	flush(s)
	if got := len(messagesOf(t, c, "t")); got != 0 {
		t.Errorf("got %d messages of another conversation, want none", got)
	}
}
