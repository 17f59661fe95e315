package pi_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// newRecoveredIn returns a server that recovers from the log and the session files of another.
func newRecoveredIn(t *testing.T, log core.RecordLog, dir string) (*hub.Hub, *pi.Server) {
	t.Helper()
	h, s := newServer(t, pi.Options{Commands: command.Options{Journal: log}, SessionDir: dir, Dialects: []string{"coven"}})
	if err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h, s
}

// withID adds an id and a key to the nth command of a list.
func withID(n int, command string) string {
	id := string(rune('a' + n))
	return `{"id":"` + id + `","idempotencyKey":"` + id + `",` + command[1:]
}

func TestSuccessesHeldInMemoryAreRedoneAfterARestart(t *testing.T) {
	commands := []struct {
		command string
		again   string // its outcome after a restart: "done again", "replayed", or a replayed error
	}{
		{`{"type":"create_session","sessionId":"s","agent":"a"}`, "done again"},
		{`{"type":"switch_session","sessionId":"s"}`, "done again"},
		{`{"type":"prompt","sessionId":"s","message":"hello"}`, "replayed"},
		{`{"type":"set_session_name","sessionId":"s","name":"mine"}`, "done again"},
		{`{"type":"set_model","sessionId":"s","provider":"coven","modelId":"b"}`, "done again"},
		{`{"type":"cycle_model","sessionId":"s"}`, "done again"}, // to a
		{`{"type":"set_thinking_level","sessionId":"s","level":"low","ifSessionVersion":4,"dependsOn":["f"]}`, "done again"},
		{`{"type":"cycle_thinking_level","sessionId":"s"}`, "done again"}, // to medium
		{`{"type":"set_auto_retry","sessionId":"s","enabled":false}`, "done again"},
		{`{"type":"set_auto_compaction","sessionId":"s","enabled":false}`, "done again"},
		{`{"type":"get_state","sessionId":"s"}`, "done again"},
		{`{"type":"list_sessions"}`, "done again"},
		{`{"type":"steer","sessionId":"s","message":"lost"}`, command.DeliveryUnknown},
		{`{"type":"follow_up","sessionId":"s","message":"lost"}`, command.DeliveryUnknown},
		{`{"type":"abort","sessionId":"s"}`, "replayed"},
	}
	full := []core.Body{core.Usage{Input: 128_000}, core.Text{Text: "full"}, core.Done{}} // as the context window is
	for name, tt := range map[string]struct {
		dir      string
		messages int
	}{"from its file": {t.TempDir(), 2}, "without one": {"", 0}} {
		t.Run(name, func(t *testing.T) {
			log := &coretest.MemoryLog{}
			h, s := newRecoveredIn(t, log, tt.dir)
			joinAgent(t, h, core.Card{ID: "a"}, echoAgent)
			joinAgent(t, h, core.Card{ID: "b"}, echoAgent)
			c := dial(t, s, pi.ConnOptions{})
			for i, cmd := range commands {
				c.ok(withID(i, cmd.command))
			}
			if tt.dir != "" {
				flush(s)
			}

			h, s = newRecoveredIn(t, copyLog(t, log), tt.dir) // no agent has reconnected yet
			c = dial(t, s, pi.ConnOptions{})
			for i, cmd := range commands {
				f := c.do(withID(i, cmd.command))
				switch {
				case cmd.again == "done again" && (!f.Success || f.Replayed):
					t.Errorf("%s: got %s, want it executed again", cmd.command, f.Raw)
				case cmd.again == "replayed" && (!f.Success || !f.Replayed):
					t.Errorf("%s: got %s, want it replayed", cmd.command, f.Raw)
				case strings.HasPrefix(cmd.again, "Message") && (f.Error != cmd.again || !f.Replayed):
					t.Errorf("%s: got %s, want the error %q replayed", cmd.command, f.Raw, cmd.again)
				}
			}
			state := c.ok(`{"type":"get_state","sessionId":"s"}`)
			if !has(state, `"sessionName":"mine"`, `"thinkingLevel":"medium"`, `"model":{"id":"a"`) {
				t.Errorf("got %s, want the name, the level and the model from before the restart", state.Raw)
			}
			if got := len(messagesOf(t, c, "s")); got != tt.messages {
				t.Errorf("got %d messages, want %d", got, tt.messages)
			}
			work, asked := failingFirst([]core.Body{overloadedFault}, full, full)
			joinAgent(t, h, core.Card{ID: "a"}, work)
			for range 3 { // the first fails, and two full ones would be compacted
				c.ok(`{"type":"prompt","sessionId":"s","message":"and now?"}`)
			}
			if n := c.count("auto_compaction_start"); *asked != 3 || n != 0 {
				t.Errorf("got %d tasks for 3 prompts and %d compactions, want no retry and no compaction", *asked, n)
			}
			if got := c.transcript("s").Snapshots; got != "fullfull" {
				t.Errorf("got %q, want each answer once at the subscriber", got)
			}
			// From here on these are outcomes of this process.
			if f := c.ok(withID(0, commands[0].command)); !f.Replayed {
				t.Errorf("got %s, want a replay", f.Raw)
			}
		})
	}
}

// A client that repeats no command still gets the session of its file.
func TestASessionOfAnEarlierProcessIsRestoredByACommandThatNamesIt(t *testing.T) {
	log, dir := &coretest.MemoryLog{}, t.TempDir()
	h, s := newRecoveredIn(t, log, dir)
	joinAgent(t, h, core.Card{ID: "a"}, echoAgent)
	c := dial(t, s, pi.ConnOptions{})
	made := c.ok(`{"id":"1","idempotencyKey":"1","type":"create_session","agent":"a"}`)
	id := stringIn(t, made.Data, "sessionId")
	c.ok(`{"id":"2","idempotencyKey":"2","type":"prompt","sessionId":"` + id + `","message":"one"}`)
	c.ok(`{"id":"3","idempotencyKey":"3","type":"new_session","sessionId":"` + id + `"}`)
	c.ok(`{"id":"4","idempotencyKey":"4","type":"prompt","sessionId":"` + id + `","message":"two"}`)
	c.ok(`{"id":"5","idempotencyKey":"5","type":"create_session","sessionId":"deleted","agent":"a"}`)
	c.ok(`{"id":"6","idempotencyKey":"6","type":"prompt","sessionId":"deleted","message":"three"}`)
	flush(s)
	c.ok(`{"id":"7","idempotencyKey":"7","type":"delete_session","sessionId":"deleted"}`)

	after := copyLog(t, log)
	_, s = newRecoveredIn(t, after, dir)
	c = dial(t, s, pi.ConnOptions{})
	if f := c.ok(`{"type":"switch_session","sessionId":"` + id + `"}`); *f.SessionVersion != 3 || !has(f, `"messageCount":2`) {
		t.Errorf("got %s, want the session with its version and its latest conversation", f.Raw)
	}
	c.fails(`{"type":"switch_session","sessionId":"deleted"}`, "Session deleted not found")
	// Repeating all commands leads to the same state.
	c.ok(`{"id":"5","idempotencyKey":"5","type":"create_session","sessionId":"deleted","agent":"a"}`)
	c.ok(`{"id":"7","idempotencyKey":"7","type":"delete_session","sessionId":"deleted"}`)
	c.fails(`{"type":"get_state","sessionId":"deleted"}`, "Session deleted not found")
	if f := c.ok(`{"id":"3","idempotencyKey":"3","type":"new_session","sessionId":"` + id + `"}`); !f.Replayed {
		t.Errorf("got %s, want it replayed: the session is in that conversation", f.Raw)
	}
	// The session keeps the id that the server generated.
	if f := c.ok(`{"id":"1","idempotencyKey":"1","type":"create_session","agent":"a"}`); stringIn(t, f.Data, "sessionId") != id || f.Replayed {
		t.Errorf("got %s, want the existing session %s", f.Raw, id)
	}
	if said := messagesOf(t, c, id); len(said) != 2 || !strings.Contains(string(said[0].JSON), "two") {
		t.Errorf("got %d messages, want the latest conversation", len(said))
	}
}

func TestASessionOfAnEarlierProcessEndsWithItsFileOrItsLifetime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, dir := &coretest.MemoryLog{}, t.TempDir()
		h, s := newRecoveredIn(t, log, dir)
		joinAgent(t, h, core.Card{ID: "a"}, echoAgent)
		c := dial(t, s, pi.ConnOptions{})
		const create = `{"id":"1","idempotencyKey":"1","type":"create_session","sessionId":"s","agent":"a"}`
		c.ok(create)
		c.ok(`{"type":"prompt","sessionId":"s","message":"one"}`)
		flush(s)
		after := copyLog(t, log)

		_, s = newRecoveredIn(t, after, t.TempDir()) // a directory without the file
		c = dial(t, s, pi.ConnOptions{})
		c.fails(`{"type":"switch_session","sessionId":"s"}`, "Session s not found")
		c.ok(create)
		if said := messagesOf(t, c, "s"); len(said) != 0 {
			t.Errorf("got %d messages, want a new session", len(said))
		}

		time.Sleep(25 * time.Hour)
		_, s = newRecoveredIn(t, after, dir)
		dial(t, s, pi.ConnOptions{}).fails(`{"type":"switch_session","sessionId":"s"}`, "Session s not found")
		if files, err := filepath.Glob(filepath.Join(dir, "*", "*.jsonl")); err != nil || len(files) != 1 {
			t.Errorf("got %q and %v, want the file kept", files, err)
		}
	})
}

// stringIn returns a member of a JSON object.
func stringIn(t *testing.T, object []byte, name string) string {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal(object, &members); err != nil {
		t.Fatal(err)
	}
	text, _ := members[name].(string)
	return text
}

func TestASummaryIsNotRequestedAgainAfterARestart(t *testing.T) {
	log, dir := &coretest.MemoryLog{}, t.TempDir()
	h, s := newRecoveredIn(t, log, dir)
	joinAgent(t, h, core.Card{ID: "a"}, echoAgent)
	c := dial(t, s, pi.ConnOptions{})
	c.ok(`{"id":"1","idempotencyKey":"1","type":"create_session","sessionId":"s","agent":"a"}`)
	c.ok(`{"type":"prompt","sessionId":"s","message":"one"}`)
	c.ok(`{"type":"prompt","sessionId":"s","message":"two"}`)
	var forkable struct {
		Messages []struct {
			EntryID string `json:"entryId"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(c.ok(`{"type":"get_fork_messages","sessionId":"s"}`).Data, &forkable); err != nil {
		t.Fatal(err)
	}
	navigate := `{"id":"2","idempotencyKey":"2","type":"navigate_tree","sessionId":"s","targetId":"` + forkable.Messages[1].EntryID + `","options":{"summarize":true}}`
	before := c.ok(navigate)
	messages := len(messagesOf(t, c, "s"))
	flush(s)

	_, s = newRecoveredIn(t, copyLog(t, log), dir) // without agents
	c = dial(t, s, pi.ConnOptions{})
	if again := c.ok(navigate); string(again.Data) != string(before.Data) || len(messagesOf(t, c, "s")) != messages {
		t.Errorf("got %s and %d messages, want %s and %d", again.Data, len(messagesOf(t, c, "s")), before.Data, messages)
	}
}
