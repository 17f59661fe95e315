package pi_test

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/core"
)

// readOnly are the commands of a session that only return what is there, and switch_session.
const readOnly = `get_available_models get_commands get_skills get_tools list_session_files get_state get_messages
	get_session_stats get_fork_messages get_last_assistant_text get_context_usage get_tree switch_session`

func TestCommandsThatOnlyReadLeaveTheVersionOfTheirSession(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	joinAgent(t, h, core.Card{ID: "a"}, echoAgent)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	c.ok(`{"type":"prompt","sessionId":"s","message":"hello"}`)
	for kind := range strings.FieldsSeq(readOnly) {
		if f := c.ok(`{"type":"` + kind + `","sessionId":"s"}`); f.SessionVersion == nil || *f.SessionVersion != 1 {
			t.Errorf("%s: got %.200s, want version 1, that of the prompt", kind, f.Raw)
		}
	}
}

func TestEveryCommandThatChangesASessionRaisesItsVersionByOne(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	joinAgent(t, h, core.Card{ID: "a"}, echoAgent)
	joinAgent(t, h, core.Card{ID: "b"}, echoAgent)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	for i, command := range []string{
		`"type":"prompt","message":"one"`,
		`"type":"steer","message":"two"`,
		`"type":"follow_up","message":"three"`,
		`"type":"abort"`,
		`"type":"abort_compaction"`,
		`"type":"abort_retry"`,
		`"type":"abort_bash"`,
		`"type":"set_model","provider":"coven","modelId":"b"`,
		`"type":"cycle_model"`,
		`"type":"set_thinking_level","level":"low"`,
		`"type":"cycle_thinking_level"`,
		`"type":"set_session_name","name":"n"`,
		`"type":"set_auto_compaction","enabled":false`,
		`"type":"set_auto_retry","enabled":false`,
		`"type":"new_session"`,
	} {
		if f := c.ok(`{"sessionId":"s",` + command + `}`); f.SessionVersion == nil || *f.SessionVersion != i+1 {
			t.Errorf("%s: got %.200s, want version %d", command, f.Raw, i+1)
		}
	}
}
