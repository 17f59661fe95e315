package hub_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/task"
)

// doorRecorder is the authorizer, limiter, tracer and auditor of a hub, and records its calls.
type doorRecorder struct {
	policy.Authorizer
	mu      sync.Mutex
	seen    []string
	audit   []policy.Entry
	opening []policy.Opening
	ended   []core.TaskID
	deny    error
	limit   error
}

func (d *doorRecorder) note(what string, c core.Command) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen = append(d.seen, what+" "+c.Act().String())
}

func (d *doorRecorder) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	seen := d.seen
	d.seen = nil
	return seen
}

func (d *doorRecorder) Allow(p core.Principal, c core.Command, o policy.Object) error {
	d.note("allow", c)
	if d.deny != nil {
		return d.deny
	}
	return d.Authorizer.Allow(p, c, o)
}

func (d *doorRecorder) Admit(c core.Call) error {
	d.note("limit", c.Command)
	return d.limit
}

func (d *doorRecorder) Open(o policy.Opening) core.Trace {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opening = append(d.opening, o)
	return core.Trace{Parent: o.Given.Parent, Above: "above"}
}

func (d *doorRecorder) Tool(t core.Trace, call string) core.Trace {
	return core.Trace{Parent: t.Parent + "/" + call}
}

func (d *doorRecorder) Ended(task core.TaskID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = append(d.ended, task)
}

func (*doorRecorder) Missed(end time.Time) bool { return end.Year() == 2026 }

func (d *doorRecorder) Recovered(all []core.TaskID) {
	for _, id := range all {
		d.Ended(id)
	}
}

func (d *doorRecorder) Audit(e policy.Entry) {
	d.note("audit", e.Call.Command)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.audit = append(d.audit, e)
}

func onDoor(t *testing.T) (*doorRecorder, *testHub) {
	d := &doorRecorder{Authorizer: policy.Default{}}
	return d, &testHub{t, coretest.NewHub(t, hub.Options{Authorizer: d, Limiter: d, Tracer: d, Auditor: d})}
}

// TestEveryCommandPassesTheDoor issues every command as the adapters do, and checks which
// layers of the door see it, in order. It fails for a command without a row.
func TestEveryCommandPassesTheDoor(t *testing.T) {
	d, g := onDoor(t)
	_, asker := g.agent("a", able, two), g.operator("r")
	d.take()
	four := 4
	open := func() *task.Task { return g.ask(asker, "a") }
	give := map[core.Act]func() error{
		core.ActOpen:   func() error { open(); return nil },
		core.ActCancel: func() error { return asker.Cancel(open().ID(), "") },
		core.ActInject: func() error { return asker.Inject(hub.NoWait, open().ID(), core.Injected{Content: "x"}) },
		core.ActDecide: func() error { return asker.Decide(hub.NoWait, open().ID(), core.ApprovalDecided{ID: "x"}) },
		core.ActAnswer: func() error {
			_, err := asker.AnswerQuestion(t.Context(), core.Reply{Question: "q", Text: "yes"})
			return err
		},
		core.ActRead:     func() error { _, err := g.hub.Task(t.Context(), operator, open().ID()); return err },
		core.ActReaders:  func() error { _, err := g.hub.Readers(t.Context(), operator, open().ID()); return err },
		core.ActWatchAll: asker.WatchAll,
		core.ActFollow:   func() error { return asker.Follow("t", nil) },
		core.ActSubscribe: func() error {
			return asker.Subscribe([]string{"a.b"})
		},
		core.ActList: func() error { g.hub.Agents(operator); return nil },
		core.ActCallTool: func() error {
			asker.CallTool("1", "agents_list", nil)
			return nil
		},
		core.ActProvide: func() error { return asker.Provide("p", nil) },
		core.ActJoin:    func() error { return asker.Join(core.Card{ID: "r"}, hub.JoinOptions{}) },
		core.ActConfigure: func() error {
			_, err := g.hub.Configure(t.Context(), operator, core.Configure{Agent: "a", MaxConcurrent: &four})
			return err
		},
		core.ActRestart: func() error { return g.hub.Restart(t.Context(), operator, "a") },
		core.ActAdmit: func() error {
			return g.hub.Admit(t.Context(), operator, core.Admit{Principal: "p", Approved: true})
		},
		core.ActDrain:  func() error { return g.hub.Drain(operator) },
		core.ActForget: func() error { return g.hub.Forget(t.Context(), operator, core.Forget{Hub: "b"}) },
	}
	for _, act := range core.Acts() {
		if give[act] == nil {
			t.Errorf("%s: got no row, want one", act)
			continue
		}
		err := give[act]()
		want := []string{"limit " + act.String(), "allow " + act.String()}
		if act.IsAudited() {
			want = append(want, "audit "+act.String())
		}
		got := slices.DeleteFunc(d.take(), func(s string) bool { return !strings.HasSuffix(s, " "+act.String()) })
		if !slices.Equal(got, want) {
			t.Errorf("%s: the door saw %q, want %q (%v)", act, got, want, err)
		}
	}

}

func TestARefusedCommandIsAuditedAndNotExecuted(t *testing.T) {
	d, g := onDoor(t)
	agent, asker := g.agent("a", able), g.connect("r")
	asked := g.ask(asker, "a")
	d.deny = core.NewFault(core.CodeNotAuthorized, "not today")
	g.wantFault("a cancel", asker.Cancel(asked.ID(), ""), core.CodeNotAuthorized)
	last := d.audit[len(d.audit)-1]
	if last.Call.Command.Act() != core.ActCancel || !errors.Is(last.Err, d.deny) || last.Call.ID == "" || last.Call.Principal.ID != "r" {
		t.Errorf("the audit has %+v, want the cancel by r and the reason for the refusal", last)
	}
	d.deny, d.limit = nil, core.NewFault(core.CodeRateLimited, "slowly")
	g.wantFault("a cancel too many", asker.Cancel(asked.ID(), ""), core.CodeRateLimited)
	if got := asked.State(); got != task.Running {
		t.Errorf("the task is %s, want it running", got)
	}
	d.limit = nil
	g.report(agent, asked, core.Done{})
}

func TestTheAuthorizerDecidesWhichAgentsGetRequests(t *testing.T) {
	d, g := onDoor(t)
	g.agent("a", able)
	d.Authorizer = notAsking(t, "r", "a")
	_, err := g.connect("r").Open(core.Request{To: core.ToAny(), Content: "go"}, hub.OpenOptions{})
	g.wantFault("an agent that it refuses", err, core.CodeNotAuthorized)
}

// TestTheDefaultRightsForEachCommand is the table of the rights without a file of rules.
func TestTheDefaultRightsForEachCommand(t *testing.T) {
	ana, ben, ops := core.Principal{ID: "ana"}, core.Principal{ID: "ben"}, operator
	for _, c := range []struct {
		command                core.Command
		own, others, operators bool
	}{
		{&core.Open{Request: &core.Request{}}, true, true, true},
		{&core.Open{Request: &core.Request{}, For: ben}, false, false, true},
		{core.Cancel{}, true, false, true},
		{core.Inject{}, true, false, true},
		{core.Decide{}, true, false, true},
		{core.Read{}, true, false, true},
		{core.Readers{}, true, false, true},
		{core.WatchAll{}, false, false, true},
		{core.Follow{}, true, true, true},
		{core.Subscribe{}, true, true, true},
		{core.List{What: core.ListTasks}, true, true, true},
		{core.List{What: core.ListUsage}, false, false, true},
		{core.List{What: core.ListAudit}, false, false, true},
		{core.CallTool{}, true, true, true},
		{core.Provide{}, true, true, true},
		{core.Join{}, true, true, true},
		{core.Configure{}, false, false, true},
		{core.Restart{}, false, false, true},
		{core.Admit{}, false, false, true},
		{core.List{What: core.ListPrincipals}, false, false, true},
		{core.Reply{}, true, true, true}, // package question checks who may answer
	} {
		name := fmt.Sprintf("%s (right %s)", c.command.Act(), core.RightOf(c.command))
		owned := func(owner core.Principal) policy.Object {
			switch c.command.(type) {
			case core.Cancel, core.Inject, core.Decide, core.Read, core.Readers:
				return policy.Object{Owner: owner}
			}
			return policy.Object{}
		}
		rules := policy.Default{}
		for who, x := range map[string]struct{ got, want bool }{
			"of one's own": {rules.Allow(ana, c.command, owned(ana)) == nil, c.own},
			"of others":    {rules.Allow(ana, c.command, owned(ben)) == nil, c.others},
			"by operators": {rules.Allow(ops, c.command, owned(ben)) == nil, c.operators},
		} {
			if x.got != x.want {
				t.Errorf("%s %s: got allowed %v, want %v", name, who, x.got, x.want)
			}
		}
	}
}
