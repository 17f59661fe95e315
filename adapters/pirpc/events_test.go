package pirpc_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/pirpc"
	"github.com/dragoman-hub/dragoman/core"
)

func TestAnApprovalOfACallThatAToolMakesIsThatOfTheCall(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		k.say(`{"type":"tool_execution_start","toolCallId":"t1","toolName":"codemode","args":{}}
			{"type":"tool_execution_start","toolCallId":"t1/1","toolName":"bash","args":{"command":"ls"},"parentToolCallId":"t1"}
			{"type":"extension_ui_request","id":"u1","method":"confirm","title":"Run it?"}`)
		if requests := bodies[core.ApprovalRequested](n, asked); len(requests) != 1 || requests[0].ID != "t1/1" || requests[0].Name != "bash" {
			t.Errorf("got %+v, want the approval of the call t1/1", requests)
		}
		if err := n.user.Decide(t.Context(), asked.ID(), core.ApprovalDecided{ID: "t1/1", Approved: true}); err != nil {
			t.Error(err)
		}
		if c := k.next("extension_ui_response"); c.Confirmed == nil || !*c.Confirmed {
			t.Errorf("got %+v, want it confirmed", c)
		}
		k.say(`{"type":"tool_execution_end","toolCallId":"t1/1","toolName":"bash","result":{"content":[]},"parentToolCallId":"t1"}
			{"type":"tool_execution_end","toolCallId":"t1","toolName":"codemode","result":{"content":[]}}`)
		n.finishes(asked, k, "ok")
	})
}

func TestAToolIsApprovedTwiceIfTwoExtensionsAsk(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		k.say(`{"type":"tool_execution_start","toolCallId":"t1","toolName":"bash","args":{}}`)
		for _, id := range []string{"u1", "u2"} {
			k.say(`{"type":"extension_ui_request","id":"` + id + `","method":"confirm","title":"Run it?"}`)
			synctest.Wait()
			if err := n.user.Decide(t.Context(), asked.ID(), core.ApprovalDecided{ID: "t1", Approved: id == "u1"}); err != nil {
				t.Fatal(err)
			}
			if c := k.next("extension_ui_response"); c.ID != id || c.Confirmed == nil || *c.Confirmed != (id == "u1") {
				t.Errorf("got %+v, want the decision on %s", c, id)
			}
			synctest.Wait()
		}
		k.say(`{"type":"tool_execution_end","toolCallId":"t1","toolName":"bash","result":{"content":[]},"isError":true}`)
		n.finishes(asked, k, "no")
	})
}

func TestWhatPiSaysTwiceOrOfNoToolIsCountedAndToldOnce(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		start := `{"type":"tool_execution_start","toolCallId":"t1","toolName":"bash","args":{}}`
		end := `{"type":"tool_execution_end","toolCallId":"t1","toolName":"bash","result":{"content":[{"type":"text","text":"out"}]}}`
		update := `{"type":"tool_execution_update","toolCallId":"t2","toolName":"bash","partialResult":{"content":[{"type":"text","text":"out"}]}}`
		k.say(start, start, update, end, end)
		n.finishes(asked, k, "ok")
		if calls, results := bodies[core.ToolCall](n, asked), bodies[core.ToolResult](n, asked); len(calls) != 1 || len(results) != 1 || results[0].Output != "out" {
			t.Errorf("got the calls %+v and the results %+v, want one of each", calls, results)
		}
		if got := n.counts.of("pi-rpc.stray"); got != 3 {
			t.Errorf("got %d strays counted, want 3", got)
		}
	})
}

func TestTheResultOfAToolIsToldIfItsStartWasLost(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		k.say(`{"type":"tool_execution_start","toolCallId":7}`, `{"type":"tool_execution_end","toolCallId":"t1","toolName":"write","result":{"content":[{"type":"text","text":"written"}]}}`)
		n.finishes(asked, k, "ok")
		if results := bodies[core.ToolResult](n, asked); len(results) != 1 || results[0].Output != "written" {
			t.Errorf("got the results %+v, want the one", results)
		}
	})
}

func TestGarbageIsLoggedByItsBeginningAndNotForEver(t *testing.T) {
	var logged bytes.Buffer
	opts := pirpc.Options{Log: slog.New(slog.NewTextHandler(&logged, nil))}
	const lines = 100
	play(t, opts, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		for range lines {
			k.say("a package prints " + strings.Repeat("x", 1000))
		}
		n.finishes(asked, k, "ok")
		if got := n.counts.of("pi-rpc.malformed"); got != lines {
			t.Errorf("got %d lines counted, want %d", got, lines)
		}
	})
	if got := strings.Count(logged.String(), "a package prints"); got == 0 || got > 20 || logged.Len() > 20*600 {
		t.Errorf("got %d warnings in %d bytes, want the first ones with the beginning of the line", got, logged.Len())
	}
}
