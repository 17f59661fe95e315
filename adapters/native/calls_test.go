package native_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/native"
	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/schemas"
)

func TestTheResultOfACallComesBeforeTheEventsOfItsTask(t *testing.T) {
	withHub(t, func(s *setup) {
		s.agent(able("agent"))
		r := s.raw(newPeer("asker"))
		r.send(`{"call":{"id":"a","act":"open","command":{"request":{"to":"agent","content":"?"}}}}`)
		id := text(r.next("result").Get("task"))
		for _, kind := range []string{"opened", "assigned"} {
			if e := r.next("event"); text(e.Get("task")) != id || text(e.Get("kind")) != kind || text(e.Get("call")) != "a" || text(e.Get("role")) != "requester" {
				t.Errorf("got %s, want %s of task %s for the call a", e.Raw(), kind, id)
			}
		}
		for _, call := range []string{"b", "c"} {
			r.send(`{"call":{"id":"` + call + `","act":"read","command":{"task":"` + id + `"}},"with":{"watch":true,"after":"1.1"}}`)
			if v := r.next("result"); text(v.Get("status", "state")) != "running" || text(v.Get("id")) != call {
				t.Errorf("got %s, want the status of a running task", v.Raw())
			}
			if e := r.next("event"); text(e.Get("kind")) != "assigned" || text(e.Get("role")) != "viewer" || text(e.Get("call")) != call {
				t.Errorf("got %s, want what happened after the cursor", e.Raw())
			}
		}
	})
}

func TestAReaderContinuesFromItsCursorAfterACut(t *testing.T) {
	withHub(t, func(s *setup) {
		agent, first := s.agent(able("agent")), s.peer("asker")
		r := ask("agent", "?")
		v := first.call(&core.Open{Request: &r, Keep: true}, wire.With{})
		id := core.TaskID(text(v.Get("task")))
		agent.report(id, core.Text{Text: "one"})
		seen := first.take()
		cursor := seen[len(seen)-1].Cursor
		first.Close()
		agent.report(id, core.Text{Text: "two"}, core.Done{})
		second := s.peer("asker")
		second.call(core.Read{Task: id}, wire.With{Watch: true, After: cursor.String()})
		rest := second.take()
		if got := kinds(rest); !slices.Equal(got, []string{"text", "done"}) || rest[0].Event.Body != (core.Text{Text: "two"}) || rest[0].Event.Seq != 4 {
			t.Errorf("got %+v, want exactly what was missed", rest)
		}
		second.refused(core.Read{Task: id}, wire.With{Watch: true, After: "here"}, core.CodeInvalid)
		second.refused(core.Read{Task: id}, wire.With{Watch: true, After: "1.99"}, core.CodeInvalid)
		second.refused(core.Read{Task: "none"}, wire.With{}, core.CodeUnknownTask)
	})
}

func TestAWatchStops(t *testing.T) {
	withHub(t, func(s *setup) {
		agent, asker, viewer := s.agent(able("agent")), s.peer("asker"), s.peer("viewer")
		r := ask("agent", "?")
		r.Thread = "th"
		viewer.call(core.Follow{Thread: "th"}, wire.With{})
		id := asker.open(r)
		viewer.call(core.Read{Task: id}, wire.With{Watch: true})
		if got := kinds(viewer.take()); !slices.Contains(got, "assigned") {
			t.Errorf("got %v, want the task that was opened in the thread", got)
		}
		viewer.call(core.Read{Task: id}, wire.With{Stop: true})
		viewer.call(core.Follow{Thread: "th"}, wire.With{Stop: true})
		agent.report(id, core.Text{Text: "more"}, core.Done{})
		asker.open(r)
		if got := viewer.take(); len(got) > 0 {
			t.Errorf("got %v, want nothing more", kinds(got))
		}
	})
}

func TestEveryListIsListed(t *testing.T) {
	withHub(t, func(s *setup) {
		agent, asker := s.agent(able("agent")), s.peer("asker")
		s.agent(able("another"))
		id := asker.open(ask("agent", "?"))
		agent.report(id, core.ApprovalRequested{ID: "t1", Name: "rm", Input: "{}"}, core.Usage{Input: 3, Output: 4})
		list := func(what core.Listed, with wire.With) string {
			t.Helper()
			return string(asker.call(core.List{What: what}, with).Raw())
		}
		for _, tt := range []struct {
			what core.Listed
			with wire.With
			want string
		}{
			{core.ListAgents, wire.With{Limit: 1}, `"more":1,"after":"agent"`},
			{core.ListAgents, wire.With{After: "agent"}, `"agents":[{"id":"another"`},
			{core.ListTasks, wire.With{State: "running", Agent: "agent", From: "asker"}, `"tasks":[{"id":"` + string(id) + `","state":"running","agent":"agent"`},
			{core.ListTasks, wire.With{State: "done"}, `"tasks":[]`},
			{core.ListApprovals, wire.With{}, `"name":"rm"`},
			{core.ListQuestions, wire.With{}, `"questions":[]`},
			{core.ListPacks, wire.With{}, `"packs":[]`},
			{core.ListAudit, wire.With{Limit: 2}, `"audit":[{"seq":1,"object":"\u003c"},{"seq":2,"object":"\u003c"}],"after":"2"`},
			{core.ListAudit, wire.With{After: "2"}, `"audit":[{"seq":3,"object":"\u003c"}]}`},
			{core.ListUsage, wire.With{By: "agent"}, `"usage":[{"key":"agent","tokens":{"input":3,"output":4}`},
		} {
			if got := list(tt.what, tt.with); !strings.Contains(got, tt.want) {
				t.Errorf("%s: got %s, want %s in it", tt.what, got, tt.want)
			}
		}
		for what := core.ListAgents; !strings.HasPrefix(what.String(), "("); what++ {
			list(what, wire.With{})
			command := []byte(`{"what":"` + what.String() + `"}`)
			if err := schemas.NativeCommand("list").Validate(command); err != nil {
				t.Errorf("the schema of list: %s: got %v, want it taken", what, err)
			}
		}
		asker.refused(core.List{What: core.ListUsage}, wire.With{By: "mood"}, core.CodeInvalid)
		asker.refused(core.List{What: core.ListTasks}, wire.With{State: "odd"}, core.CodeInvalid)
		asker.refused(core.List{What: core.ListAudit}, wire.With{After: "x"}, core.CodeInvalid)
		asker.refused(core.List{What: core.ListTasks}, wire.With{Limit: -1}, core.CodeInvalid)
		asker.take()
		if got := string(asker.call(core.Readers{Task: id}, wire.With{}).Raw()); !strings.Contains(got, `"role":"requester","seq":4,"behind":0`) {
			t.Errorf("got %s, want the requester who has read everything", got)
		}
		agent.stop(id)
	})
}

func TestAPackAnswersAndFails(t *testing.T) {
	withHub(t, func(s *setup) {
		pack, caller := s.peer("pack"), s.peer("caller")
		if got := strings.Join(toolNames(caller), " "); strings.Contains(got, "upper") {
			t.Errorf("got %s, want no tool of the pack before it is there", got)
		}
		schema := json.RawMessage(`{"type":"object","properties":{"s":{"type":"string"}},"required":["s"]}`)
		pack.call(core.Provide{Pack: "text", Tools: []string{"upper"}}, wire.With{Tools: []wire.Tool{{Name: "upper", Description: "in capitals", InputSchema: schema, TimeoutMS: 5000}}})
		synctest.Wait()
		if got := caller.others(); len(got) != 1 || !strings.Contains(got[0], `"name":"upper","description":"in capitals","pack":"text","input_schema":{"type":"object"`) {
			t.Errorf("got %v, want the new list of tools", got)
		}
		answers := make(chan string)
		ask := func() {
			go func() {
				v, err := caller.Call(s.Context(), core.CallTool{Tool: "upper", Input: json.RawMessage(`{"s":"a"}`)}, wire.With{})
				answers <- text(v.Get("output")) + errorText(err)
			}()
		}
		for _, tt := range []struct {
			output json.RawMessage
			fault  *core.Fault
			want   string
		}{{json.RawMessage(`"A"`), nil, "A"}, {nil, core.NewFault(core.CodeInternal, "no"), "internal: no"}} {
			ask()
			told := pack.others()
			_, frame, _ := strings.Cut(told[0], " ")
			e := strictjson.ParseValid([]byte(frame))
			if text(e.Get("tool")) != "upper" || string(e.Get("input").Raw()) != `{"s":"a"}` || text(e.Get("from", "id")) != "caller" {
				t.Errorf("got %s, want the call of the caller", told[0])
			}
			if err := pack.Answer(s.Context(), text(e.Get("id")), tt.output, tt.fault); err != nil {
				t.Fatal(err)
			}
			if got := <-answers; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if err := pack.Answer(s.Context(), text(e.Get("id")), tt.output, tt.fault); err != nil {
				t.Fatal(err)
			}
			if got := pack.others(); len(got) != 1 || !strings.Contains(got[0], `"execution":"`+text(e.Get("id"))) {
				t.Errorf("a second answer: got %v, want an error that names the execution", got)
			}
		}
		caller.refused(core.CallTool{Tool: "lower"}, wire.With{}, core.CodeUnsupported)
		pack.Close()
		synctest.Wait()
		if got := strings.Join(toolNames(caller), " "); strings.Contains(got, "upper") {
			t.Errorf("got %s, want no tool of a pack that is gone", got)
		}
	})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return core.AsFault(err).Error()
}

func toolNames(p *peer) (names []string) {
	p.Helper()
	tools, err := p.Tools(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	for _, t := range tools {
		names = append(names, t.Name)
	}
	return names
}

func TestAToolOfTheHubAsksAnotherAgentBecauseOfTheTask(t *testing.T) {
	withHub(t, func(s *setup) {
		first, second, asker := s.agent(able("first")), s.agent(able("second")), s.peer("asker")
		id := asker.open(ask("first", "?"))
		answer := make(chan string)
		go func() {
			v, err := first.Call(s.Context(), core.CallTool{Tool: "agent_ask", Input: json.RawMessage(`{"to":"second","content":"?"}`)}, wire.With{})
			answer <- text(v.Get("output", "text")) + errorText(err)
		}()
		told := second.take()
		opened := told[0].Event.Body.(core.Opened)
		if opened.Request.Cause != id || opened.Hops != 1 {
			t.Errorf("got %+v, want it caused by %s", opened, id)
		}
		second.refused(&core.Open{Request: new(ask("first", "?"))}, wire.With{}, core.CodeLoop)
		second.report(opened.Task, core.Text{Text: "yes"}, core.Done{})
		if got := <-answer; got != "yes" {
			t.Errorf("got %q, want the answer", got)
		}
		first.report(id, core.Done{})
	})
}

func TestNoticesReachAgentsAndSubscribers(t *testing.T) {
	withHub(t, func(s *setup) {
		agent, reader, asker := s.agent(able("agent")), s.peer("reader"), s.peer("asker")
		reader.call(core.Subscribe{Topics: []string{"door.*"}}, wire.With{})
		notice := core.Request{Intent: core.IntentNotify, To: core.ToAgent("agent"), Notice: &core.Notice{Topic: "door.open", Data: json.RawMessage(`1`)}}
		asker.open(notice)
		told := reader.take()
		if len(told) != 1 || told[0].Role != "subscriber" || told[0].Event.Body.(core.Opened).Request.Notice.Topic != "door.open" {
			t.Errorf("got %+v, want the notice", told)
		}
		if got := kinds(agent.take()); !slices.Equal(got, []string{"opened", "assigned"}) {
			t.Errorf("got %v, want the agent told of the notice, and no end", got)
		}
		if got := kinds(asker.take()); got[len(got)-1] != "done" {
			t.Errorf("got %v, want it done once the agent's transport took it", got)
		}
		reader.Close()
		asker.open(notice)
		again := s.peer("reader")
		again.call(core.Subscribe{}, wire.With{Resume: true})
		if told := again.take(); len(told) == 0 {
			t.Error("got nothing, want what was published while the subscriber was away")
		}
		again.call(core.Subscribe{}, wire.With{Stop: true})
		asker.open(notice)
		if told := again.take(); len(told) != 0 {
			t.Errorf("got %+v, want no more", told)
		}
	})
}

func TestAnOperatorConfiguresAnAgentAndSeesAllTasks(t *testing.T) {
	withHub(t, func(s *setup) {
		agent, chief := s.agent(able("agent")), s.peer("chief")
		chief.call(core.WatchAll{}, wire.With{})
		v := chief.call(core.Configure{Agent: "agent", MaxConcurrent: new(2), Reason: "less"}, wire.With{})
		if got := string(v.Get("status", "id").Raw()); got != `"agent"` {
			t.Errorf("got %s, want the status of the agent", v.Raw())
		}
		if got := agent.others(); len(got) != 1 || got[0] != `settings {"max_concurrent":2,"heartbeat_ns":0,"concurrent":2,"reason":"less"}` {
			t.Errorf("got %v, want the settings", got)
		}
		id := s.peer("asker").open(ask("agent", "?"))
		if got := kinds(chief.take()); !slices.Equal(got, []string{"opened", "assigned"}) {
			t.Errorf("got %v, want the task of somebody else", got)
		}
		plain := s.peerWith(native.Options{Principal: core.Principal{ID: "plain", Authenticated: true}})
		for _, c := range []core.Command{core.WatchAll{}, core.Configure{Agent: "agent"}, core.List{What: core.ListUsage}} {
			plain.refused(c, wire.With{}, core.CodeNotAuthorized)
		}
		for _, c := range []core.Command{core.Read{Task: id}, core.Cancel{Task: id}} {
			plain.refused(c, wire.With{}, core.CodeUnknownTask)
		}
		agent.report(id, core.Done{})
	})
}

func TestAPackShowsProgressAsksAndLearnsThatNobodyWaits(t *testing.T) {
	withHub(t, func(s *setup) {
		pack, agent, asker := s.peer("pack"), s.agent(able("agent")), s.peer("asker")
		pack.call(core.Provide{Pack: "p"}, wire.With{Tools: []wire.Tool{{Name: "dig"}}})
		asker.call(core.List{What: core.ListQuestions}, wire.With{Watch: true, Thread: "th"})
		r := ask("agent", "?")
		r.Thread = "th"
		id := asker.open(r)
		agent.report(id, core.ToolCall{ID: "3", Name: "dig", Input: "{}"}) // that of the call below
		fail := make(chan error, 1)
		go func() {
			_, err := agent.Call(s.Context(), core.CallTool{Tool: "dig"}, wire.With{})
			fail <- err
		}()
		told := pack.others()
		_, frame, _ := strings.Cut(told[0], " ")
		execution := text(strictjson.ParseValid([]byte(frame)).Get("id"))
		if err := pack.Send(s.Context(), "progress", wire.Progress{Execution: execution, Detail: "half"}); err != nil {
			t.Fatal(err)
		}
		asked := make(chan string, 2)
		ask := func(ask func() (question.Outcome, error)) {
			go func() {
				o, err := ask()
				asked <- o.String() + errorText(err)
			}()
		}
		ask(func() (question.Outcome, error) {
			return pack.AskCaller(s.Context(), execution, question.Question{Text: "Deeper?", Options: []core.Option{{Label: "yes"}, {Label: "no"}}})
		})
		answer := func(want string) {
			t.Helper()
			shown := asker.others()
			_, frame, _ := strings.Cut(shown[0], " ")
			q := strictjson.ParseValid([]byte(frame)).Get("question")
			if got := text(q.Get("question")); got != want {
				t.Errorf("got the question %q, want %q", got, want)
			}
			asker.call(core.Reply{Question: text(q.Get("id")), Text: "yes"}, wire.With{})
			if got := <-asked; got != "yes" {
				t.Errorf("got %q, want yes", got)
			}
			asker.others()
		}
		answer("dig asks: Deeper?")
		ask(func() (question.Outcome, error) {
			return agent.AskPeople(s.Context(), id, question.Question{Text: "Ready?"})
		})
		answer("Ready?")
		form := question.Form{Name: "day", Message: "Which?", Schema: json.RawMessage(`{"type":"object"}`)}
		ask(func() (question.Outcome, error) {
			return agent.AskPeople(s.Context(), id, question.Question{Text: "Which day?", Form: &form})
		})
		_, shown, _ := strings.Cut(asker.others()[0], " ")
		open := strictjson.ParseValid([]byte(shown)).Get("question")
		if got, want := string(open.Get("form").Raw()), `{"name":"day","message":"Which?","schema":{"type":"object"}}`; got != want {
			t.Errorf("got the form %s, want %s", got, want)
		}
		asker.call(core.Reply{Question: text(open.Get("id")), Content: json.RawMessage(`{"n":1}`)}, wire.With{})
		if got := <-asked; got != `{"n":1}` {
			t.Errorf("got %q, want the content of the form", got)
		}
		asker.others()
		ask(func() (question.Outcome, error) {
			return agent.AskPeople(s.Context(), "none", question.Question{Text: "Ready?"})
		})
		if got := <-asked; !strings.HasPrefix(got, "not_authorized") {
			t.Errorf("got %q, want the task refused", got)
		}
		asker.call(core.Cancel{Task: id}, wire.With{})
		if err := <-fail; core.AsFault(err).Code != core.CodeCancelled {
			t.Errorf("got %v, want the call cancelled with its task", err)
		}
		if got := pack.others(); len(got) != 1 || got[0] != `withdrawn {"execution":"`+execution+`"}` {
			t.Errorf("got %v, want the execution withdrawn", got)
		}
		if err := pack.Send(s.Context(), "progress", wire.Progress{Execution: execution, Detail: "all"}); err != nil {
			t.Fatal(err)
		}
		if got := pack.others(); len(got) != 1 || !strings.Contains(got[0], execution) {
			t.Errorf("late progress: got %v, want an error", got)
		}
		agent.stop(id)
	})
}

func TestCallsThatWaitAreBoundedInBytes(t *testing.T) {
	withHub(t, func(s *setup) {
		opts := native.Options{AgentID: "a", FrameBytes: 1000}
		holder, r := s.raw(opts), s.raw(opts)
		join := func(id string) string {
			return `{"call":{"id":"` + id + `","act":"join","command":{"card":{"metadata":{"pad":"` + strings.Repeat("x", 600) + `"}}}}}`
		}
		holder.send(join("1"))
		holder.next("result")
		r.send(join("1")) // waits until the holder shows that it is alive
		synctest.Wait()
		r.send(join("2"))
		r.send(join("3"))
		r.wantError("overloaded", `"id":"3"`, "too many calls wait already (1)")
		for range 2 { // the holder reads nothing, so it has lost its id after a moment
			r.next("result")
		}
		r.send(join("4"))
		if v := r.next("result"); text(v.Get("id")) != "4" {
			t.Errorf("got %s, want room again", v.Raw())
		}
	})
}

func TestWhoFollowsAllTasksWithPositionsResumesExactly(t *testing.T) {
	withHub(t, func(s *setup) {
		agent, asker := s.agent(able("agent")), s.peer("asker")
		chief := s.peer("chief")
		v := chief.call(core.WatchAll{}, wire.With{Positions: true})
		at, _ := v.Get("position").Text()
		if at == "" {
			t.Fatalf("got %s, want a position", v.Raw())
		}
		chief.refused(core.WatchAll{}, wire.With{Positions: true}, core.CodeConflict)
		first := asker.open(ask("agent", "?"))
		seen := chief.take()
		if got := kinds(seen); !slices.Equal(got, []string{"opened", "assigned"}) {
			t.Fatalf("got %v, want the task of somebody else", got)
		}
		chief.call(core.WatchAll{}, wire.With{Stop: true})
		agent.report(first, core.Text{Text: "so"}, core.Done{})
		if got := chief.take(); len(got) != 0 {
			t.Errorf("got %v once it was stopped, want nothing", kinds(got))
		}
		second := asker.open(ask("agent", "?"))
		for _, from := range []struct {
			after string
			want  []string
		}{
			{seen[0].Position, []string{"assigned", "text", "done", "opened", "assigned"}},
			{seen[1].Position, []string{"text", "done", "opened", "assigned"}},
			{at, []string{"opened", "assigned", "text", "done", "opened", "assigned"}},
		} {
			again := s.peer("again")
			again.call(core.WatchAll{}, wire.With{After: from.after})
			got := again.take()
			if !slices.Equal(kinds(got), from.want) {
				t.Errorf("got %v, want %v", kinds(got), from.want)
			}
			for _, e := range got {
				if e.Position == "" || e.Role != "viewer" || e.Call == "" {
					t.Errorf("got %+v, want a viewer's, with the call and a position", e.Head)
				}
			}
			again.Client.Close()
		}
		chief.refused(core.WatchAll{}, wire.With{After: "yesterday"}, core.CodeInvalid)
		chief.call(core.WatchAll{}, wire.With{After: seen[1].Position}) // a refused one leaves nothing
		plain := s.peerWith(native.Options{Principal: core.Principal{ID: "plain", Authenticated: true}})
		plain.refused(core.WatchAll{}, wire.With{Positions: true}, core.CodeNotAuthorized)
		agent.report(second, core.Done{})
	})
}
