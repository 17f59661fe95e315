package hub_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/tool"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// errNothing says that a principal found nothing, which refuses as well: what it may not see is
// not there for it.
var errNothing = errors.New("it found nothing")

// registers is a [hub.Registrar] that agrees to everything.
type registers struct{}

func (registers) Principals() []core.KnownPrincipal {
	return []core.KnownPrincipal{{Principal: "p", Credential: "token", Status: core.PrincipalApproved}}
}
func (registers) Admit(context.Context, string, bool) error { return nil }

// visited is a hub with rules, on which zoe has asked the agent a, and a person who visits it.
type visited struct {
	*testHub
	agent, zoe, pack *hub.Session
	who              core.Principal
	as               *hub.Session
}

// opened returns a new task of zoe's.
func (v *visited) opened(thread core.ThreadID) *task.Task {
	v.t.Helper()
	return v.open(v.zoe, core.Request{To: core.ToAgent("a"), Thread: thread})
}

// waiting returns a task of zoe's with a tool call that waits for approval.
func (v *visited) waiting() *task.Task {
	v.t.Helper()
	t := v.opened("")
	v.report(v.agent, t, core.Accepted{}, core.ToolCall{ID: "t", Name: "rm"}, core.ApprovalRequested{ID: "t"})
	return t
}

// everyAct tries every command on what belongs to others.
var everyAct = map[core.Act]func(*visited) error{
	core.ActOpen: func(v *visited) error {
		_, err := v.as.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{})
		return err
	},
	core.ActCancel: func(v *visited) error { return v.as.Cancel(v.opened("").ID(), "") },
	core.ActInject: func(v *visited) error {
		return v.as.Inject(hub.NoWait, v.opened("").ID(), core.Injected{Content: "psst"})
	},
	core.ActDecide: func(v *visited) error {
		return v.as.Decide(hub.NoWait, v.waiting().ID(), core.ApprovalDecided{ID: "t", Approved: true})
	},
	core.ActAnswer: func(v *visited) error {
		v.zoe.WatchQuestions(question.View{Tag: "zoe", Thread: "trip", For: v.zoe.Identity().Principal}) // somebody has it open
		v.opened("trip")
		v.agent.CallTool("c", "ask_user", []byte(whichDay))
		synctest.Wait()
		open := v.hub.Questions(operator)
		if len(open) != 1 {
			v.t.Fatalf("got the questions %+v, want one", open)
		}
		_, err := v.as.AnswerQuestion(v.t.Context(), core.Reply{Question: open[0].ID, Selected: []string{"Monday"}})
		return err
	},
	core.ActRead:     func(v *visited) error { _, err := v.hub.Task(v.t.Context(), v.who, v.opened("").ID()); return err },
	core.ActReaders:  func(v *visited) error { _, err := v.hub.Readers(v.t.Context(), v.who, v.opened("").ID()); return err },
	core.ActWatchAll: func(v *visited) error { return v.as.WatchAll() },
	core.ActFollow: func(v *visited) error {
		if err := v.as.Follow("trip", nil); err != nil {
			return err
		}
		v.opened("trip")
		synctest.Wait()
		if len(v.events(v.as)) == 0 {
			return errNothing
		}
		return nil
	},
	core.ActList: func(v *visited) error {
		v.waiting()
		tasks, err := v.hub.Tasks(v.t.Context(), v.who, task.Filter{})
		if err != nil {
			return err
		}
		_, _, usage := v.hub.Usage(v.t.Context(), v.who, usage.ByAgent)
		principals, listed := v.hub.Principals(v.who)
		found := 0
		for _, n := range []int{len(v.hub.Agents(v.who)), len(v.hub.Packs(v.who)), len(tasks.Tasks), len(v.hub.ApprovalsHere(v.who)), len(principals)} {
			if n > 0 {
				found++
			}
		}
		for _, err := range []error{usage, listed} {
			if err == nil {
				found++
			}
		}
		switch found {
		case 0:
			return errNothing
		case 7:
			return nil
		}
		v.t.Errorf("%s: got %d of 7 lists, want all or none", v.who.ID, found)
		return nil
	},
	core.ActCallTool: func(v *visited) error {
		v.as.CallTool("c", "shelf_echo", []byte(`{}`))
		synctest.Wait()
		if b, ok := v.batch(v.pack); ok && b.Execute != nil {
			return nil
		}
		b, _ := v.batch(v.as)
		if b.Tool == nil || b.Tool.Fault == nil {
			v.t.Fatalf("got %+v, want a call or its refusal", b)
		}
		return b.Tool.Fault
	},
	core.ActProvide: func(v *visited) error { return v.as.Provide("mine", nil) },
	core.ActJoin: func(v *visited) error { // needs no right, but a credential with the id
		return v.as.Join(core.Card{ID: "alice-agent", Dialect: "test"}, hub.JoinOptions{})
	},
	core.ActConfigure: func(v *visited) error {
		two := 2
		_, err := v.hub.Configure(v.t.Context(), v.who, core.Configure{Agent: "a", MaxConcurrent: &two})
		return err
	},
	core.ActRestart: func(v *visited) error { return v.hub.Restart(v.t.Context(), v.who, "a") },
	core.ActAdmit:   func(v *visited) error { return v.hub.Admit(v.t.Context(), v.who, core.Admit{Principal: "p"}) },
	core.ActDrain:   func(v *visited) error { return v.hub.Drain(v.who) },
	core.ActForget:  func(v *visited) error { return v.hub.Forget(v.t.Context(), v.who, core.Forget{Hub: "b"}) },
}

// noRight are the acts that nobody needs a right for, and why.
var noRight = map[core.Act]string{
	core.ActSubscribe: "each notice is for those whom its sender may ask: see topics_test.go",
}

// entries keeps the audit of a test.
type entries struct {
	mu  sync.Mutex
	all []policy.Entry
}

func (e *entries) Audit(one policy.Entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, one)
}

// of returns the entries of a principal.
func (e *entries) of(who string) (all []policy.Entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, one := range e.all {
		if one.Call.Principal.ID == who {
			all = append(all, one)
		}
	}
	return all
}

// wantOneEntry checks that the audit has the act of a principal exactly once, with its outcome,
// or not at all if it is not audited.
func (e *entries) wantOneEntry(t *testing.T, who string, act core.Act, err error) {
	t.Helper()
	got := e.of(who)
	switch {
	case !act.IsAudited():
		if len(got) != 0 {
			t.Errorf("got the entries %+v, want none of an act that is not audited", got)
		}
	case len(got) != 1 || got[0].Call.Command.Act() != act:
		t.Errorf("got the entries %+v, want one of %s", got, act)
	case core.AsFault(got[0].Err) != nil && core.AsFault(got[0].Err).Code == core.CodeNotAuthorized && err != nil && core.AsFault(err).Code == core.CodeUnknownTask:
		// the audit says what its principal may not know
	case err == nil && got[0].Err != nil, err != nil && (got[0].Err == nil || core.AsFault(err).Code != core.AsFault(got[0].Err).Code):
		t.Errorf("got the outcome %v, want %v", got[0].Err, err)
	case got[0].Call.Command.Object() == "" && act != core.ActWatchAll && act != core.ActDrain:
		t.Errorf("got no object in %+v, want one", got[0])
	}
}

// limited is a limiter with whom a principal has to wait.
type limited string

func (l limited) Admit(c core.Call) error {
	if c.Principal.ID == string(l) {
		return core.NewFault(core.CodeRateLimited, "slowly")
	}
	return nil
}

// TestBobMayDoNothingThatAliceMay tries every command of the door as alice, who has every right by
// a rule, and as bob, of whom no rule speaks. It fails for a command that it does not know.
func TestBobMayDoNothingThatAliceMay(t *testing.T) {
	rights := policy.Rights()
	table, err := policy.Compile([]policy.Rule{{Who: []string{"alice*"}, May: rights, Line: 2}})
	if err != nil {
		t.Fatal(err)
	}
	for _, act := range core.Acts() {
		try := everyAct[act]
		if try == nil {
			if noRight[act] == "" {
				t.Errorf("%s: got no row, want one in everyAct, or in noRight with the reason", act)
			}
			continue
		}
		for who, allowed := range map[string]bool{"alice": true, "bob": false, "alice-in-a-hurry": false} {
			t.Run(act.String()+" by "+who, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					audit := &entries{}
					g := &testHub{t, coretest.NewHub(t, hub.Options{Auditor: audit, Limiter: limited("alice-in-a-hurry"), Authorizer: table, Registrar: registers{}, Restart: func(string) error { return nil }, Forget: func(context.Context, string) error { return nil }})}
					v := &visited{testHub: g, who: core.Principal{ID: who, Authenticated: true, Credential: &core.Credential{Agents: []string{who + "*"}}}}
					robot := core.Principal{ID: "robot", Authenticated: true, Credential: &core.Credential{Agents: []string{"a"}}}
					v.agent, v.zoe = g.agentOf(robot, "a", able|core.FeatureApprovals, skilled("ui")), g.operator("zoe")
					v.pack = g.operator("shelf")
					if err := v.pack.Provide("shelf", []tool.Definition{{Name: "shelf_echo"}}); err != nil {
						t.Fatal(err)
					}
					v.as = g.connectAs(v.who)
					err := try(v)
					refused := err != nil && (errors.Is(err, errNothing) || slices.Contains([]core.Code{core.CodeNotAuthorized, core.CodeUnknownAgent, core.CodeUnknownTask, core.CodeUnsupported, core.CodeRateLimited}, core.AsFault(err).Code))
					if refused == allowed || allowed && err != nil {
						t.Errorf("got %v, want allowed %v", err, allowed)
					}
					audit.wantOneEntry(t, who, act, err)
				})
			})
		}
	}
}
