package native_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/task"
)

// byAgent are the kinds that an agent says.
func byAgent() (kinds []core.Kind) {
	for _, k := range core.Kinds() {
		switch k {
		case core.KindOpened, core.KindQuestionAsked, core.KindQuestionAnswered, core.KindRetrying:
		default:
			if !k.ForAgent() {
				kinds = append(kinds, k)
			}
		}
	}
	return kinds
}

// valid reports whether a value can be sent: a key of JSON has no NUL.
func valid[V any](v V) bool {
	return strictjson.Check([]byte(asJSON(v)), strictjson.Limits{}) == nil
}

// equal compares events without what the hub fills in. An empty file is a file.
var equal = cmp.Options{coretest.Compare, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(core.Fault{}), cmpopts.IgnoreFields(core.Event{}, "Seq", "Epoch", "At")}

// named returns what an agent says with what the hub names in it: the SHA-256 of an input.
func named(b core.Body) core.Body {
	a, ok := b.(core.ApprovalRequested)
	if !ok {
		return b
	}
	sum := sha256.Sum256([]byte(a.Input))
	a.InputSHA256 = hex.EncodeToString(sum[:])
	return a
}

func TestWhatANativeAgentSaysReachesANativeRequesterUnchanged(t *testing.T) {
	withHub(t, func(s *setup) {
		agent, asker := s.agent(able("agent")), s.peer("asker")
		rapid.Check(t, func(t *rapid.T) {
			v, err := asker.Call(s.Context(), &core.Open{Request: new(ask("agent", "go"))}, wire.With{})
			if err != nil {
				t.Fatalf("open: got %v, want no error", err)
			}
			id := core.TaskID(text(v.Get("task")))
			defer agent.stop(id)
			agent.take()
			var want []core.Event
			say := func(e core.Event) {
				if err := agent.ReportConfirmed(s.Context(), id, e.Body, e.Foreign); err != nil {
					t.Fatalf("%s: got %v, want no error", e.Body.Kind(), err)
				}
				if nothing := e.Body.Kind() == core.KindText && e.Body.(core.Text).Text == ""; !nothing || e.Foreign != nil { // a text that says nothing
					e.Body = named(e.Body)
					want = append(want, e)
				}
			}
			middle := slices.DeleteFunc(byAgent(), core.Kind.Ends)
			for _, k := range rapid.SliceOfN(rapid.SampledFrom(middle), 1, 6).Draw(t, "kinds") {
				say(coretest.EventOf(k).Filter(valid).Draw(t, "event"))
			}
			end := rapid.SampledFrom([]core.Kind{core.KindDone, core.KindFailed, core.KindCancelled}).Draw(t, "end")
			last := coretest.EventOf(end).Filter(valid).Draw(t, "event")
			for _, s := range task.Closing(slices.Values(want), last.Body) { // the hub ends what the agent has not
				want = append(want, core.Event{Body: s})
			}
			say(last)
			var got []core.Event
			for _, told := range asker.take() {
				if k := told.Event.Body.Kind(); told.Task == id && slices.Contains(byAgent(), k) {
					got = append(got, told.Event)
				}
			}
			if d := cmp.Diff(want, got, equal); d != "" {
				t.Fatalf("the events (-want +got):\n%s", d)
			}
			agent.take()
		})
	})
}

func TestWhatANativeRequesterAsksReachesANativeAgentUnchanged(t *testing.T) {
	withHub(t, func(s *setup) {
		agent, asker := s.agent(able("agent")), s.peer("asker")
		rapid.Check(t, func(t *rapid.T) {
			want := coretest.Requests().Filter(valid).Draw(t, "request")
			want.To, want.Cause, want.Thread = core.ToAgent("agent"), "", core.ThreadID(core.NewID())
			want.Deadline = core.Request{}.Deadline
			if want.Content += "x"; want.Intent == core.IntentNotify {
				want.Notice.Topic = "a." + want.Notice.Topic
			}
			v, err := asker.Call(s.Context(), &core.Open{Request: &want}, wire.With{})
			if err != nil {
				t.Fatalf("open: got %v, want no error", err)
			}
			id := core.TaskID(text(v.Get("task")))
			defer agent.stop(id)
			told := agent.take()
			if got := kinds(told); !slices.Equal(got[:2], []string{"opened", "assigned"}) {
				t.Fatalf("got %v, want the agent told that it was opened, and assigned", got)
			}
			opened := told[0].Event.Body.(core.Opened)
			if opened.Task != id || opened.From.ID != "asker" || opened.From.Dialect != "native" {
				t.Errorf("got %+v, want task %s of the asker", opened, id)
			}
			filled := cmpopts.IgnoreFields(core.Request{}, "Deadline", "Priority")
			if d := cmp.Diff(want, opened.Request, equal, filled); d != "" {
				t.Fatalf("the request (-want +got):\n%s", d)
			}
			if want.Priority != 0 && opened.Request.Priority != want.Priority {
				t.Errorf("got priority %s, want %s", opened.Request.Priority, want.Priority)
			}
			if want.Intent == core.IntentNotify {
				return
			}
			inject := coretest.Body(core.KindInjected).Draw(t, "injected").(core.Injected)
			if _, err := asker.Call(s.Context(), core.Inject{Task: id, Context: inject}, wire.With{}); err != nil {
				t.Fatalf("inject: got %v, want no error", err)
			}
			if inject.Priority == 0 {
				inject.Priority = core.InjectionNormal
			}
			inject.Trace = core.Trace{}                            // that of the call, which has none
			inject.Source, inject.Claimed = "asker", inject.Source // as the connection was established
			if inject.Claimed == inject.Source {
				inject.Claimed = ""
			}
			call := coretest.Body(core.KindApprovalRequested).Draw(t, "approval").(core.ApprovalRequested)
			decide := coretest.Body(core.KindApprovalDecided).Draw(t, "decision").(core.ApprovalDecided)
			digest := named(call).(core.ApprovalRequested).InputSHA256
			decide.ID, decide.InputSHA256 = call.ID, rapid.SampledFrom([]string{"", digest}).Draw(t, "input_sha256")
			if err := agent.ReportConfirmed(s.Context(), id, call, nil); err != nil {
				t.Fatalf("approval_requested: got %v, want no error", err)
			}
			if _, err := asker.Call(s.Context(), core.Decide{Task: id, Decision: decide}, wire.With{}); err != nil {
				t.Fatalf("decide: got %v, want no error", err)
			}
			decide.By, decide.InputSHA256 = "asker", digest
			cancel := core.Cancel{Task: id, Reason: rapid.String().Draw(t, "reason")}
			if _, err := asker.Call(s.Context(), cancel, wire.With{}); err != nil {
				t.Fatalf("cancel: got %v, want no error", err)
			}
			var got []core.Body
			for _, told := range agent.take() {
				got = append(got, told.Event.Body)
			}
			wantTold := []core.Body{inject, decide, core.CancelRequested{By: "asker", Reason: cancel.Reason}}
			if d := cmp.Diff(wantTold, got, equal); d != "" {
				t.Fatalf("what the agent was told (-want +got):\n%s", d)
			}
		})
	})
}

func TestMembersAndKindsOfANewerPeerPassUntouched(t *testing.T) {
	withHub(t, func(s *setup) {
		end, _ := s.connect(newPeer("agent"))
		asker, _ := s.connect(newPeer("asker"))
		a, r := raw{s, end}, raw{s, asker}
		a.next("hello")
		r.next("hello")
		a.send(`{"call":{"id":"1","act":"join","command":{"card":{"features":["cancellation"]}}}}`)
		a.next("result")
		r.send(`{"call":{"id":"1","act":"open","command":{"request":{"to":"agent","content":"?","mood":{"a":[1]}}}}}`)
		result := r.next("result")
		id := text(result.Get("task"))
		if got := string(result.Get("unknown").Raw()); got != `{"mood":""}` {
			t.Errorf("got %s as what the hub does not know, want the mood", got)
		}
		opened := a.next("event")
		if got := string(opened.Get("body", "request", "mood").Raw()); got != `{"a":[1]}` {
			t.Errorf("got the member %q of the request, want it where it was; %s", got, opened.Raw())
		}
		if opened.Get("body", "request", "foreign").Exists() {
			t.Errorf("got %s, want no foreign", opened.Raw())
		}
		a.next("event") // assigned
		for _, e := range []string{
			`"kind":"text","body":{"text":"Hallo","lang":"de"},"tone":"soft"`,
			`"kind":"sparkle","body":{"colour":"red"},"tone":1`,
			`"kind":"sparkle"`,
			`"kind":"thinking","body":{"text":"hm","a":null},"foreign":{"dialect":"acp","json":{"x":1}}`,
			`"kind":"text","body":{"text":"x"},"foreign":{"dialect":"native","json":{"seq":7,"body":{"text":"y"}}}`,
			`"kind":"foreign","body":{"dialect":"native","name":"text","more":1}`,
			`"kind":"done","body":{"mark":[1,2]}`,
		} {
			a.send(`{"event":{"task":"` + id + `",` + e + `}}`)
			var want, got map[string]json.RawMessage
			if err := json.Unmarshal([]byte("{"+e+"}"), &want); err != nil {
				t.Fatal(err)
			}
			for {
				v := r.next("event")
				if err := json.Unmarshal(v.Raw(), &got); err != nil {
					t.Fatal(err)
				}
				if k := text(v.Get("kind")); k != "opened" && k != "assigned" {
					break
				}
				clear(got)
			}
			for _, name := range []string{"task", "role", "call", "cursor", "seq", "epoch", "at"} {
				delete(got, name)
			}
			if asJSON(got) != asJSON(want) {
				t.Errorf("got %s, want %s", asJSON(got), asJSON(want))
			}
		}
	})
}
