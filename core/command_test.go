package core_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

func TestTheJSONFormOfACallDoesNotChange(t *testing.T) { wantGolden(t, "calls.jsonl", oneCallOfEach()) }

func TestTheGoldenCallsHaveEveryAct(t *testing.T) {
	seen := map[core.Act]bool{}
	for _, c := range oneCallOfEach() {
		seen[c.Command.Act()] = true
	}
	for _, a := range core.Acts() {
		if !seen[a] {
			t.Errorf("got no call of %s, want one", a)
		}
	}
}

func TestAnInvalidCallIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"an unknown act":        `{"principal":{"id":"ana"},"act":"dance","command":{}}`,
		"no command":            `{"principal":{"id":"ana"},"act":"cancel"}`,
		"a command that is nil": `{"principal":{"id":"ana"},"act":"cancel","command":null}`,
		"no request":            `{"principal":{"id":"ana"},"act":"open","command":{}}`,
		"an unknown list":       `{"principal":{"id":"ana"},"act":"list","command":{"what":"secrets"}}`,
		"no JSON":               `{`,
	} {
		var c core.Call
		if err := json.Unmarshal([]byte(text), &c); err == nil {
			t.Errorf("%s: got %+v, want an error", name, c)
		}
	}
}

// oneCallOfEach returns a call of every act with all its fields set.
func oneCallOfEach() (calls []core.Call) {
	four, beat := 4, 5*time.Second
	ana := core.Principal{ID: "ana", Dialect: "pi", Authenticated: true}
	for _, c := range []core.Command{
		&core.Open{
			Request: &core.Request{Intent: core.IntentAsk, To: core.ToAgent("ben"), Content: "hello"},
			For:     core.Principal{ID: "bob", Dialect: "coven"}, Keep: true, Unwatched: true, Private: true,
		},
		core.Cancel{Task: "0197-task", Reason: "enough"},
		core.Inject{Task: "0197-task", Context: core.Injected{ID: "1", Content: "by the way", Priority: core.InjectionNormal, Source: "ana"}},
		core.Decide{Task: "0197-task", Decision: core.ApprovalDecided{ID: "tool-1", Approved: true, All: true, By: "ana", Reason: "fine", Option: "o1"}},
		core.Reply{Question: "q-1", Selected: []string{"red"}, Text: "dark red", Dismissed: true},
		core.Read{Task: "0197-task"},
		core.Readers{Task: "0197-task"},
		core.WatchAll{},
		core.Follow{Thread: "thread"},
		core.Subscribe{Topics: []string{"family.*"}},
		core.List{What: core.ListUsage},
		core.CallTool{Tool: "agent_ask", Input: json.RawMessage(`{"to":"ben"}`)},
		core.Provide{Pack: "files", Tools: []string{"read", "write"}},
		core.Join{Card: core.Card{ID: "ben", Name: "Ben", Dialect: "acp", Capabilities: []string{"write"}, MaxConcurrent: 2}},
		core.Configure{Agent: "ben", MaxConcurrent: &four, Heartbeat: &beat, Reason: "less"},
		core.Restart{Name: "ben"},
		core.Drain{}, core.Forget{Hub: "ben"},
		core.List{What: core.ListAudit},
		core.Admit{Principal: "agent-29d97ee7", Approved: true},
	} {
		calls = append(calls, core.Call{ID: "7", Principal: ana, Trace: core.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=b"}, Command: c})
	}
	return calls
}
