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
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
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

// as returns the options of a client with a token of the principal that has the roles.
func as(principal string, roles ...string) pi.ConnOptions {
	return pi.ConnOptions{Principal: core.Principal{ID: principal, Authenticated: true, Credential: &core.Credential{Roles: roles}}}
}

func TestUnderRulesAnApprovalIsForWhoMayDecide(t *testing.T) {
	h, s := newServerOn(t, hub.Options{Authorizer: coretest.Rules(t, "* see,ask", "boss read,approve")}, pi.Options{})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a", Features: core.FeatureApprovals}, w.work)
	ann, boss := dial(t, s, as("ann")), dial(t, s, as("boss"))
	ann.open("s", "a")
	ann.send(`{"id":"p","type":"prompt","sessionId":"s","message":"hers"}`)
	task := <-w.tasks
	boss.ok(`{"type":"create_session","sessionId":"look","thread":"` + string(threadOf(ann, "s")) + `"}`)
	boss.ok(`{"type":"switch_session","sessionId":"look"}`)
	a.report(task, core.ApprovalRequested{ID: "k", Name: "rm", Input: "{}"})
	ann.until("a waits for somebody to approve rm")
	event, _ := command.Decode(boss.until(`"extension_ui_request"`, `"confirm"`).Event, 1<<20)
	asked, _ := event.Text("requestId")
	answer := func(session string) string {
		return `{"type":"extension_ui_response","sessionId":"` + session + `","requestId":"` + asked + `","response":{"method":"confirm","confirmed":true}}`
	}
	if got := ann.do(answer("s")); got.Error != "ann may not approve tool calls of agent a: the operator can allow it" {
		t.Errorf("ann, who may not approve: got %q, want it refused", got.Error)
	}
	boss.ok(answer("look"))
	if got := <-w.requests; !got.(core.ApprovalDecided).Approved || got.(core.ApprovalDecided).By != "boss" {
		t.Errorf("got %+v, want it approved by boss", got)
	}
	a.report(task, core.Done{})
}

func TestUnderRulesASessionShowsOnlyWhatAllItsClientsMayRead(t *testing.T) {
	h, s := newServerOn(t, hub.Options{Authorizer: coretest.Rules(t, "* see,ask", "role:duty read")}, pi.Options{})
	joinAgent(t, h, core.Card{ID: "a"}, answerWith(core.Done{Text: "x"}))
	duty, guest := dial(t, s, as("ann", "duty")), dial(t, s, as("ann"))
	newAsker(t, h, "bob").ask("bobs", "a", "for bob and who is on duty")

	guest.fails(`{"type":"create_session","sessionId":"look","thread":"bobs"}`, "Thread bobs belongs to somebody else")
	duty.ok(`{"type":"create_session","sessionId":"look","thread":"bobs"}`)
	for _, frame := range []string{`{"type":"switch_session","sessionId":"look"}`, `{"type":"get_messages","sessionId":"look"}`} {
		guest.fails(frame, "Session look shows tasks of others, read with other rights than yours: delete it, or create another for its thread")
	}
	duty.ok(`{"type":"switch_session","sessionId":"look"}`)
	newAsker(t, h, "bob").ask("bobs", "a", "more for both")
	duty.until(`"agent_end"`, "more for both")

	// A session that shows only its own tasks is for both, and shows nothing that one of them
	// may not read.
	duty.ok(`{"type":"create_session","sessionId":"own","thread":"news"}`)
	both := []*testClient{duty, guest}
	for _, c := range both {
		c.ok(`{"type":"switch_session","sessionId":"own"}`)
	}
	newAsker(t, h, "bob").ask("news", "a", "for those on duty alone")
	newAsker(t, h, "ann").ask("news", "a", "for ann")
	for _, c := range both {
		if c.until(`"agent_end"`, "for ann"); c.count("for those on duty alone") > 0 {
			t.Errorf("got bob's task shown in a session that somebody sees who may not read it")
		}
	}
}

func TestUnderRulesThePathOfTheJournalIsForWhoMayOperate(t *testing.T) {
	_, s := newServerOn(t, hub.Options{Authorizer: coretest.Rules(t, "ann operate", "bob see,ask,read")}, pi.Options{Commands: command.Options{Journal: &coretest.MemoryLog{}, JournalPath: "/srv/hub"}})
	for who, want := range map[string]string{"ann": "/srv/hub", "bob": "[redacted]"} {
		if got := dial(t, s, as(who)).ok(`{"type":"get_metrics"}`); !has(got, `"journalPath":"`+want+`"`) {
			t.Errorf("%s: got %s, want the path %s", who, got.Data, want)
		}
	}
}
