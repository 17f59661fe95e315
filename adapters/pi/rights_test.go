package pi_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core"
)

// needed maps the commands of a session to their required members.
var needed = map[string]string{
	"prompt": `"message":"x"`, "steer": `"message":"x"`, "follow_up": `"message":"x"`, "set_model": `"provider":"coven","modelId":"a"`,
	"set_thinking_level": `"level":"low"`, "set_session_name": `"name":"x"`, "set_auto_compaction": `"enabled":true`, "set_auto_retry": `"enabled":true`,
	"bash": `"command":"true"`, "fork": `"entryId":"x"`, "navigate_tree": `"targetId":"x"`,
	"switch_session_file":   `"sessionPath":"FILE"`,
	"extension_ui_response": `"requestId":"ASKED","response":{"method":"confirm","confirmed":true}`,
}

// Every command for the session of another principal fails, also for an operator. No other
// command reveals the session.
func TestNoCommandReachesTheSessionOfAnotherPrincipal(t *testing.T) {
	h, s := newServer(t, pi.Options{SessionDir: t.TempDir()})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a", Features: core.FeatureApprovals | core.FeatureInjection}, w.work)
	ann := dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: "ann", Authenticated: true}})
	ann.open("s", "a")
	ann.send(`{"id":"p","type":"prompt","sessionId":"s","message":"hers"}`)
	task := <-w.tasks
	a.report(task, core.ApprovalRequested{ID: "k", Name: "rm", Input: "{}"})
	f := ann.until(`"extension_ui_request"`)
	event, _ := command.Decode(f.Event, 1<<20)
	asked, _ := event.Text("requestId")
	file := textOf(ann, `{"type":"get_state","sessionId":"s"}`, "sessionFile")
	if asked == "" || file == "" {
		t.Fatalf("got the request %q and the file %q, want both", asked, file)
	}
	fill := strings.NewReplacer("FILE", file, "ASKED", asked)
	for _, name := range []string{"bob", "root"} {
		c := dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: name, Authenticated: true, Operator: name == "root"}})
		for _, frame := range []string{`{"type":"list_sessions"}`, `{"type":"list_stored_sessions"}`, `{"type":"get_command_history"}`} {
			if got := c.ok(frame); has(got, `"s"`) || has(got, file) || has(got, "hers") {
				t.Errorf("%s, %s: got %s, want nothing about her session", name, frame, got.Data)
			}
		}
		for _, kind := range slices.Sorted(maps.Keys(command.Table)) {
			if !command.Table[kind].Session && kind != "switch_session" && kind != "delete_session" {
				continue
			}
			frame := fmt.Sprintf(`{"type":%q,"sessionId":"s"`, kind)
			if members := needed[kind]; members != "" {
				frame += "," + fill.Replace(members)
			}
			if got := c.do(frame + "}"); got.Error != "Session s not found" {
				t.Errorf("%s, %s: got %q, want %q", name, kind, got.Error, "Session s not found")
			}
		}
		if got := c.do(`{"type":"load_session","sessionPath":"` + file + `"}`); got.Error == "" {
			t.Errorf("%s, her file: got %s, want it refused", name, got.Data)
		}
		c.open("s", "a") // the id is free for other principals
		if got := c.do(fill.Replace(`{"type":"extension_ui_response","sessionId":"s",` + needed["extension_ui_response"] + `}`)); got.Error != "No pending UI request with id "+asked {
			t.Errorf("%s answers her request in another session: got %q, want it unknown", name, got.Error)
		}
	}
	ann.ok(fill.Replace(`{"type":"extension_ui_response","sessionId":"s",` + needed["extension_ui_response"] + `}`))
	if got := <-w.requests; got.(core.ApprovalDecided).By != "ann" {
		t.Errorf("got %+v, want it decided by ann", got)
	}
	a.report(task, core.Done{})
}
