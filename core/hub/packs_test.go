package hub_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/pack"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// packTool is a tool of a pack that requires the capabilities.
func packTool(name string, capabilities ...string) tool.Definition {
	return tool.Definition{Name: name, Description: "the tool " + name, Requires: capabilities}
}

// pack connects a pack that provides the tools.
func (g *testHub) pack(id string, tools ...tool.Definition) *hub.Session {
	g.t.Helper()
	s := g.connect("pack " + id)
	if err := s.Provide(id, tools); err != nil {
		g.t.Fatalf("providing %s: got %v, want no error", id, err)
	}
	return s
}

// execution reads the next execution of the pack, which must be ready.
func (g *testHub) execution(pack *hub.Session) *pack.Execution {
	g.t.Helper()
	b, ok := g.batch(pack)
	if !ok || b.Execute == nil {
		g.t.Fatalf("got %+v, want an execution", b)
	}
	return b.Execute
}

func (g *testHub) answer(pack *hub.Session, id, output string) {
	g.t.Helper()
	if err := pack.AnswerTool(id, tool.Result{Output: json.RawMessage(output)}); err != nil {
		g.t.Fatalf("answering: got %v, want no error", err)
	}
}

func names(tools []tool.Definition) string {
	var all []string
	for _, t := range tools {
		all = append(all, t.Name)
	}
	return strings.Join(all, " ")
}

const ownTools = "agents_list agent_ask agent_delegate agent_result agent_notify agent_cancel task_readers"

func skilled(capabilities ...string) func(*core.Card) {
	return func(c *core.Card) { c.Capabilities = capabilities }
}

func TestACallReachesThePackAndItsAnswerTheCaller(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, p := g.agent("a", able), g.pack("sky", packTool("weather"))
		a.CallTool("c1", "weather", []byte(`{"city":"Bonn"}`))
		e := g.execution(p)
		if e.Tool != "weather" || string(e.Input) != `{"city":"Bonn"}` || e.Agent != "a" || e.From.ID != "a" || time.Until(e.Deadline) != 30*time.Second {
			t.Errorf("got %+v, want the call of a, within 30s", e)
		}
		g.answer(p, e.ID, `{"sun":true}`)
		if o := g.tool(a); o.Call != "c1" || o.Pack != "sky" || string(o.Output) != `{"sun":true}` || o.Fault != nil {
			t.Errorf("got %+v, want the output of the pack", o)
		}
		a.CallTool("c2", "weather", nil)
		e = g.execution(p)
		if string(e.Input) != "{}" {
			t.Errorf("no input: got %s, want an empty object", e.Input)
		}
		if err := p.AnswerTool(e.ID, tool.Result{Fault: core.NewFault(core.CodeInternal, "no clouds")}); err != nil {
			t.Fatal(err)
		}
		if o := g.tool(a); o.Fault == nil || o.Fault.Message != "no clouds" || o.Output != nil {
			t.Errorf("got %+v, want the error of the pack", o)
		}
	})
}

func TestAToolNeedsAllItsCapabilities(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		g.pack("box", packTool("open"), packTool("mail_send", "mail"), packTool("admin_kick", "mail", "admin"))
		for capabilities, want := range map[string]string{"": "open", "mail": "mail_send open", "admin": "open", "admin,mail": "admin_kick mail_send open"} {
			a := g.agent("a-"+strings.ReplaceAll(capabilities, ",", "-"), able, skilled(strings.Split(capabilities, ",")...))
			if got := names(a.Tools()); got != ownTools+" "+want {
				t.Errorf("with %q: got %s, want the hub's own and %s", capabilities, got, want)
			}
			for _, name := range []string{"open", "mail_send", "admin_kick"} {
				a.CallTool("c", name, nil)
				if strings.Contains(want, name) {
					continue
				}
				if o := g.tool(a); o.Fault == nil || o.Fault.Code != core.CodeNotAuthorized || o.Pack != "box" {
					t.Errorf("%s with %q: got %+v, want it refused", name, capabilities, o)
				}
			}
		}
		plain := g.connect("plain")
		if got := names(plain.Tools()); got != ownTools+" open" {
			t.Errorf("a session without an agent: got %s, want the tools without required capabilities", got)
		}
		if got := plain.Tools()[6].Requires; got != nil {
			t.Errorf("open: got %v required, want nothing", got)
		}
	})
}

func TestACallThatIsNotAnsweredInTimeTimesOut(t *testing.T) {
	withHub(t, hub.Limits{PackCalls: 2}, func(g *testHub) {
		slow, patient := packTool("slow"), packTool("patient")
		slow.Timeout, patient.Timeout = 2*time.Second, time.Hour
		a, p := g.agent("a", able), g.pack("p", slow, patient)
		a.CallTool("c1", "slow", nil)
		e := g.execution(p)
		a.CallTool("c2", "patient", nil)
		g.sleep(2 * time.Second)
		if o := g.tool(a); o.Call != "c1" || o.Fault == nil || o.Fault.Code != core.CodeTimeout || !o.Fault.Retryable {
			t.Errorf("got %+v, want c1 timed out", o)
		}
		g.wantFault("answering too late", p.AnswerTool(e.ID, tool.Result{Output: json.RawMessage("1")}), core.CodeConflict)
		g.sleep(298 * time.Second)
		if o := g.tool(a); o.Call != "c2" || o.Fault == nil || o.Fault.Code != core.CodeTimeout {
			t.Errorf("got %+v, want c2 timed out at the maximum for tools", o)
		}
		g.withdrawn(p, e.ID)
		if b, ok := g.batch(p); ok {
			t.Errorf("got %+v, want nothing: an abandoned call is not delivered", b)
		}
		for name, want := range map[string]int64{"tool.timeout": 2, "tool.late": 1} {
			if got := g.hub.Counters()[name]; got != want {
				t.Errorf("%s: got %d, want %d", name, got, want)
			}
		}
		for _, call := range []string{"c3", "c4"} {
			a.CallTool(call, "slow", nil)
			g.answer(p, g.execution(p).ID, "1")
			g.tool(a)
		}
	})
}

func TestCallsOfALostPackAreAnsweredAtOnce(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b, p := g.agent("a", able), g.agent("b", able), g.pack("p", packTool("x"))
		a.CallTool("answered", "x", nil)
		g.execution(p)
		b.CallTool("waits", "x", nil)
		p.Close(core.NewFault(core.CodeUnreachable, "its connection was lost"))
		for call, s := range map[string]*hub.Session{"answered": a, "waits": b} {
			o := g.tool(s)
			if o.Call != call || o.Fault == nil || o.Fault.Code != core.CodeUnreachable || !strings.Contains(o.Fault.Message, "its connection was lost") {
				t.Errorf("got %+v, want %s answered as unreachable", o, call)
			}
		}
		a.CallTool("after", "x", nil)
		if o := g.tool(a); o.Fault == nil || o.Fault.Code != core.CodeUnsupported {
			t.Errorf("got %+v, want the tool to be unknown", o)
		}
		if got := names(a.Tools()); got != ownTools {
			t.Errorf("got %s, want the hub's own", got)
		}
		g.pack("p", packTool("x")) // the id and the name are free again
	})
}

func TestThePackDoesNotGetTheCallOfACallerThatLeft(t *testing.T) {
	withHub(t, hub.Limits{PackCalls: 2}, func(g *testHub) {
		a, p := g.agent("a", able), g.pack("p", packTool("x"))
		a.CallTool("answered", "x", nil)
		e := g.execution(p)
		a.CallTool("waits", "x", nil)
		a.Close(nil)
		g.withdrawn(p, e.ID)
		if b, ok := g.batch(p); ok {
			t.Errorf("got %+v, want nothing", b)
		}
		g.answer(p, e.ID, "1")
		kept := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "k"}, Dialect: "test", Keep: true})
		kept.CallTool("1", "x", nil)
		kept.CallTool("2", "x", nil)
		kept.Close(nil)
		g.execution(p)
		g.execution(p)
	})
}

func TestTheCallsQueuedForAPackAreBounded(t *testing.T) {
	withHub(t, hub.Limits{PackCalls: 3, RequestBytes: 1000}, func(g *testHub) {
		a, p, q := g.agent("a", able), g.pack("p", packTool("x")), g.pack("q", packTool("y"))
		for i := range 4 {
			a.CallTool(fmt.Sprint(i), "x", nil)
		}
		if o := g.tool(a); o.Call != "3" || o.Fault.Code != core.CodeOverloaded || !o.Fault.Retryable {
			t.Errorf("got %+v, want the fourth refused", o)
		}
		g.answer(p, g.execution(p).ID, "1")
		g.tool(a)
		a.CallTool("again", "x", nil)
		if b, ok := g.batch(a); ok {
			t.Errorf("got %+v, want the call accepted after an answer", b)
		}
		big := []byte(`"` + strings.Repeat("x", 600) + `"`)
		a.CallTool("big", "y", big)
		a.CallTool("bigger", "y", big)
		if o := g.tool(a); o.Call != "bigger" || o.Fault.Code != core.CodeOverloaded {
			t.Errorf("got %+v, want it refused: too many bytes wait", o)
		}
		g.answer(q, g.execution(q).ID, "1")
		if got := g.hub.Counters()["refused.tool.overloaded"]; got != 2 {
			t.Errorf("counted: got %d, want 2", got)
		}
	})
}

func TestABadPackIsRefusedWithTheReason(t *testing.T) {
	bad := func(change func(*tool.Definition)) []tool.Definition {
		x := packTool("x")
		change(&x)
		return []tool.Definition{packTool("fine"), x}
	}
	schema := func(s string) []tool.Definition { return bad(func(x *tool.Definition) { x.InputSchema = []byte(s) }) }
	long := strings.Repeat("x", 60<<10)
	for name, c := range map[string]struct {
		id    string
		tools []tool.Definition
		code  core.Code
		want  string
	}{
		"no id":                  {"", nil, core.CodeInvalid, "pack id"},
		"control characters":     {"a\x00", nil, core.CodeInvalid, "pack id"},
		"a long id":              {strings.Repeat("x", 513), nil, core.CodeInvalid, "512"},
		"an id that is taken":    {"there", nil, core.CodeConflict, "pack there already registered"},
		"the hub's own name":     {"p", []tool.Definition{packTool("agent_ask")}, core.CodeConflict, "tool name collision: tool 'agent_ask' already registered as builtin"},
		"a name of another pack": {"p", []tool.Definition{packTool("taken")}, core.CodeConflict, "tool name collision: tool 'taken' already registered by pack 'there'"},
		"a name twice":           {"p", []tool.Definition{packTool("x"), packTool("x")}, core.CodeInvalid, "'x' is in the manifest twice"},
		"a name with a blank":    {"p", []tool.Definition{packTool("x y")}, core.CodeInvalid, `"x y"`},
		"no name":                {"p", []tool.Definition{packTool("")}, core.CodeInvalid, "tool name"},
		"too many tools":         {"p", []tool.Definition{packTool("1"), packTool("2"), packTool("3"), packTool("4")}, core.CodeTooLarge, "the limit is 3"},
		"a long description":     {"p", bad(func(x *tool.Definition) { x.Description = long + long }), core.CodeTooLarge, "shorten"},
		"no UTF-8":               {"p", bad(func(x *tool.Definition) { x.Description = "\xff" }), core.CodeInvalid, "UTF-8"},
		"a schema of no JSON":    {"p", schema(`{`), core.CodeInvalid, "input schema of tool x"},
		"a schema of null":       {"p", schema(`null`), core.CodeInvalid, "got null"},
		"a schema of strings":    {"p", schema(`{"type":"string"}`), core.CodeInvalid, `want "object"`},
		"a schema that is bad":   {"p", schema(`{"bad":1}`), core.CodeInvalid, "bad: not wanted"},
		"too many packs":         {"p", nil, core.CodeOverloaded, "2 packs"},
	} {
		t.Run(name, func(t *testing.T) {
			withSchemas(t, hub.Limits{Packs: 2, PackTools: 3}, func(g *testHub) {
				g.pack("there", packTool("taken"))
				if name == "too many packs" {
					g.pack("another")
				}
				s := g.connect("s")
				err := s.Provide(c.id, c.tools)
				g.wantFault(name, err, c.code)
				if !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q in it", err, c.want)
				}
				if got := names(s.Tools()); got != ownTools+" taken" {
					t.Errorf("got %s, want no tools of the refused manifest", got)
				}
			})
		})
	}
}

func TestTheDefinitionsOfAllToolsAreBounded(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		var many []tool.Definition
		for i := range 45 {
			x := packTool(fmt.Sprint("t", i))
			x.Description = strings.Repeat("x", 50<<10)
			many = append(many, x)
		}
		p := g.pack("p", many[:20]...)
		g.wantFault("twice as much", g.connect("q").Provide("q", append(many[20:], packTool("x"))), core.CodeTooLarge)
		if err := p.Provide("p", many[:10]); err != nil {
			t.Errorf("fewer definitions instead: got %v, want no error", err)
		}
	})
}

func TestAPackMayChangeItsTools(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, p := g.agent("a", able), g.pack("p", packTool("x"), packTool("y"))
		time.Sleep(time.Minute) // the next change begins a row of its own
		a.WatchTools()
		a.CallTool("c1", "x", nil)
		if err := p.Provide("p", []tool.Definition{packTool("y"), packTool("z")}); err != nil {
			t.Fatal(err)
		}
		if b, ok := g.batch(a); !ok || !b.ToolsChanged {
			t.Errorf("got %+v, want ToolsChanged", b)
		}
		if got := names(a.Tools()); got != ownTools+" y z" {
			t.Errorf("got %s, want the tools it provides now", got)
		}
		a.CallTool("c2", "x", nil)
		if o := g.tool(a); o.Fault == nil || o.Fault.Code != core.CodeUnsupported {
			t.Errorf("got %+v, want x unknown", o)
		}
		g.answer(p, g.execution(p).ID, "1") // earlier calls are still answered
		g.tool(a)
		g.wantFault("another id", p.Provide("q", nil), core.CodeConflict)
		time.Sleep(time.Minute)
		p.Close(nil)
		g.pack("q")
		if b, ok := g.batch(a); !ok || !b.ToolsChanged {
			t.Errorf("got %+v, want ToolsChanged once", b)
		}
		if b, ok := g.batch(a); ok {
			t.Errorf("got %+v, want nothing more", b)
		}
	})
}

func TestAPackAnswersOnlyItsOwnCalls(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, p, q := g.agent("a", able), g.pack("p", packTool("x")), g.pack("q")
		a.CallTool("c1", "x", nil)
		e := g.execution(p)
		if got := g.hub.Provider(e.ID); got != p {
			t.Errorf("the pending pack: got %v, want the pack", got)
		}
		g.wantFault("another pack", q.AnswerTool(e.ID, tool.Result{Output: json.RawMessage("1")}), core.CodeNotAuthorized)
		g.wantFault("an unknown call", q.AnswerTool("no-such", tool.Result{Output: json.RawMessage("1")}), core.CodeConflict)
		g.wantFault("no JSON", p.AnswerTool(e.ID, tool.Result{Output: json.RawMessage("sunny")}), core.CodeInvalid)
		if o := g.tool(a); o.Fault == nil || !strings.Contains(o.Fault.Message, "not JSON") {
			t.Errorf("got %+v, want the caller to get the fault", o)
		}
		if got := g.hub.Provider(e.ID); got != nil {
			t.Errorf("the pending pack: got %v, want none", got)
		}
	})
}

func TestAStoppingHubAnswersTheCallsOfPacks(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, p := g.agent("a", able), g.pack("p", packTool("x"))
		a.CallTool("c1", "x", nil)
		g.execution(p)
		if err := g.hub.Close(g.t.Context(), "maintenance"); err != nil {
			t.Fatal(err)
		}
		if b, ok := g.batch(a); !ok || b.Draining == "" {
			t.Errorf("got %+v, want the fault of a stopping hub", b)
		}
		if o := g.tool(a); o.Fault == nil || o.Fault.Code != core.CodeUnreachable {
			t.Errorf("got %+v, want the call answered as unreachable", o)
		}
		a.CallTool("c2", "x", nil)
		g.wantFault("a pack that comes now", g.connect("q").Provide("q", nil), core.CodeUnreachable)
	})
}

// notWanted is a schema checker that refuses the member "bad".
func notWanted(schema []byte) (func([]byte) error, error) {
	bad := func(b []byte) error {
		var m map[string]any
		if json.Unmarshal(b, &m) == nil && m["bad"] != nil {
			return errors.New("bad: not wanted")
		}
		return nil
	}
	return bad, bad(schema)
}

// withSchemas is withHub with a hub that checks schemas.
func withSchemas(t *testing.T, limits hub.Limits, test func(*testHub)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(&testHub{t, coretest.NewHub(t, hub.Options{Limits: limits, Schema: notWanted})})
	})
}

func TestAnInputIsCheckedBeforeThePackGetsIt(t *testing.T) {
	withSchemas(t, hub.Limits{}, func(g *testHub) {
		a, p := g.agent("a", able), g.pack("p", packTool("x"))
		for input, want := range map[string]string{
			`{"bad":1}`: "invalid input: bad: not wanted", `{`: "invalid input: not JSON", `{"a":1,"a":2}`: "invalid input: duplicate key",
		} {
			a.CallTool("c", "x", []byte(input))
			if o := g.tool(a); o.Fault == nil || o.Fault.Code != core.CodeInvalid || !strings.HasPrefix(o.Fault.Message, want) {
				t.Errorf("%s: got %+v, want %s", input, o, want)
			}
		}
		if b, ok := g.batch(p); ok {
			t.Errorf("got %+v, want nothing for the pack", b)
		}
	})
}

func TestThatAPackIsAbsentIsToldToThoseWhoMayCallIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testHub{t, coretest.NewHub(t, hub.Options{Authorizer: coretest.Rules(t, "ann see,ask pack:dev", "eve see,ask pack:prod", "dev provide")})}
		dev := g.connect("dev")
		dev.Absent("dev", core.NewFault(core.CodeUnreachable, "pack dev is starting"))
		for name, want := range map[string]core.Code{"ann": core.CodeUnreachable, "eve": core.CodeUnsupported} {
			s := g.connect(name)
			s.CallTool("c", "dev.x", nil)
			if o := g.tool(s); o.Fault == nil || o.Fault.Code != want {
				t.Errorf("%s calls a tool: got %+v, want %s", name, o, want)
			}
			if why := s.Missing("dev.x"); (why != nil) != (want == core.CodeUnreachable) {
				t.Errorf("%s looks for a tool: got %v, want %s", name, why, want)
			}
		}
		if got := g.hub.Packs(core.Principal{ID: "ann"}); len(got) > 0 {
			t.Errorf("got the packs %+v, want none", got)
		}
		dev.Close(nil)
		s := g.connect("ann")
		s.CallTool("c", "dev.x", nil)
		if o := g.tool(s); o.Fault == nil || o.Fault.Code != core.CodeUnsupported {
			t.Errorf("after its session has ended: got %+v, want no such tool", o)
		}
	})
}
