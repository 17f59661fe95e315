package pirpc_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pirpc"
	"github.com/dragoman-hub/dragoman/core"
)

func hello() core.Request { return core.Request{Content: "hello"} }

func TestAnAnswerOfAnOldVersionArrivesInItsPieces(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		if c := k.prompted(); c.Message != "hello" || len(c.Images) > 0 {
			t.Errorf("got the prompt %+v, want hello", c)
		}
		k.begins()
		// The message and partial of an update may have text of later ones: they are one live object.
		for i, piece := range []string{"one ", "two ", "thr\u2028ee ", "four ", "five"} {
			k.say(`{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":` + quoted(piece) +
				`,"partial":{"role":"assistant","content":[{"type":"text","text":"` + strings.Repeat("x", i) + `"}]}},"message":{"content":[]}}` + "\r")
		}
		k.ends("one two thr\u2028ee four five", "stop", `,"usage":{"input":5,"output":4,"cacheRead":3,"cacheWrite":2,"totalTokens":14}`)
		k.say(`{"type":"turn_end","message":{},"toolResults":[]}`)
		k.settles()
		a := n.wants(asked, core.KindDone, "one two thr\u2028ee four five")
		if want := (core.Usage{Input: 5, Output: 4, CacheRead: 3, CacheWrite: 2}); a.Usage != want {
			t.Errorf("got the usage %+v, want %+v", a.Usage, want)
		}
		if got, want := n.story(asked), "opened assigned session_started accepted text text text text text usage done"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestARunOfANewVersionEndsWhenItHasSettled(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		k.answers("HELLO")
		k.say(`{"type":"agent_end","messages":[],"willRetry":false}`)
		k.is(idle)
		time.Sleep(time.Minute)
		n.wants(asked, 0, "HELLO")
		k.say(`{"type":"agent_settled","aborted":false}`)
		n.wants(asked, core.KindDone, "HELLO")
		if k.states > 3 {
			t.Errorf("the state was asked for %d times, want no more than at the start and for the prompt", k.states)
		}
	})
}

func TestAnOldVersionThatGoesOnAfterItsEndIsWaitedFor(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		k.answers("one")
		k.is(strings.Replace(idle, `"isCompacting":false`, `"isCompacting":true`, 1))
		k.say(`{"type":"agent_end","messages":[]}`, `{"type":"compaction_start","reason":"threshold"}`)
		synctest.Wait()
		k.is(strings.Replace(idle, `"pendingMessageCount":0`, `"pendingMessageCount":1`, 1))
		k.say(`{"type":"compaction_end","reason":"threshold","result":{},"aborted":false,"willRetry":false}`)
		time.Sleep(150 * time.Millisecond)
		k.say(`{"type":"agent_start"}`)
		k.answers(" two")
		k.settles()
		n.wants(asked, core.KindDone, "one two")
		if frames := bodies[core.ForeignFrame](n, asked); len(frames) != 2 || frames[0].Name != "compaction_start" {
			t.Errorf("got %v, want the two events of the compaction", frames)
		}
	})
}

func TestARetryAfterAnOverflowIsWaitedForAndToldOnce(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		k.begins()
		k.delta("so far")
		k.ends("so far", "error", `,"errorMessage":"prompt is too long"`)
		k.is(strings.Replace(idle, `"isCompacting":false`, `"isCompacting":true`, 1))
		k.say(`{"type":"agent_end","messages":[]}`, `{"type":"compaction_start","reason":"overflow"}`)
		synctest.Wait() // it has asked whether pi goes on
		k.is(idle)
		k.say(`{"type":"compaction_end","reason":"overflow","result":{},"aborted":false,"willRetry":true}`)
		time.Sleep(100 * time.Millisecond)
		k.say(`{"type":"agent_start"}`)
		n.finishes(asked, k, "so far, so good")
	})
}

// retries lets a message end in an error, which pi retries.
func (k *kid) retries(text string) {
	k.ends(text, "error", `,"errorMessage":"503 no healthy upstream"`)
	k.is(idle)
	k.say(`{"type":"agent_end","messages":[]}`, `{"type":"auto_retry_start","attempt":1,"maxAttempts":3,"delayMs":2000,"errorMessage":"503 no healthy upstream"}`)
	time.Sleep(2 * time.Second)
	k.say(`{"type":"agent_start"}`, `{"type":"turn_start"}`)
}

func TestARetryBeforeAnyTextIsTransparent(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		k.begins()
		k.retries("")
		k.answers("HELLO")
		k.say(`{"type":"auto_retry_end","success":true,"attempt":1}`)
		k.settles()
		n.wants(asked, core.KindDone, "HELLO")
	})
}

func TestWhatARetryRepeatsIsToldOnce(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		k.begins()
		k.delta("HELLO, ")
		k.delta("wor")
		k.retries("HELLO, wor")
		k.begins()
		k.delta("HEL")
		k.retries("HEL") // this attempt gets less far
		k.begins()
		k.delta("HELLO")
		k.delta(", world")
		k.delta("!")
		k.ends("HELLO, world!", "stop", "")
		k.settles()
		n.wants(asked, core.KindDone, "HELLO, world!")
		if texts := bodies[core.Text](n, asked); len(texts) != 4 {
			t.Errorf("got the pieces %q, want four", texts)
		}
	})
}

func TestARetryThatSaysSomethingElseFailsTheTask(t *testing.T) {
	for name, second := range map[string]string{"another text": "HELP", "a shorter text": "HEL"} {
		t.Run(name, func(t *testing.T) {
			play(t, pirpc.Options{}, func(n *nursery) {
				asked, k := n.ask(hello()), <-n.kids
				k.prompted()
				k.begins()
				k.delta("HELLO")
				k.retries("HELLO")
				k.answers(second)
				k.next("clear_queue")
				k.accept(k.next("abort"))
				k.settles()
				n.fails(asked, core.CodeUnreachable, "the model broke off in the middle of its answer")
				if a := asked.Answer(); a.Text != "HELLO" {
					t.Errorf("got %q, want what was told once", a.Text)
				}
			})
		})
	}
}

func TestAFailureOfTheModelFailsTheTask(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		k.begins()
		k.retries("")
		k.begins()
		k.ends("", "error", `,"errorMessage":"503 still not"`)
		k.is(idle)
		k.say(`{"type":"agent_end","messages":[]}`, `{"type":"auto_retry_end","success":false,"attempt":1,"finalError":"503 still not"}`)
		n.fails(asked, core.CodeInternal, "503 still not")
	})
}

func TestAToolIsToldWithWhatEachUpdateAdds(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		k.begins()
		k.ends("", "toolUse", "")
		k.say(`
			{"type":"tool_execution_start","toolCallId":"t1","toolName":"bash","args":{"command":"seq 3"}}
			{"type":"tool_execution_update","toolCallId":"t1","toolName":"bash","args":{},"partialResult":{"content":[]}}
			{"type":"tool_execution_update","toolCallId":"t1","toolName":"bash","args":{},"partialResult":{"content":[{"type":"text","text":"1\n"}],"details":{}}}
			{"type":"tool_execution_update","toolCallId":"t1","toolName":"bash","args":{},"partialResult":{"content":[{"type":"text","text":"1\n2\n"}]}}
			{"type":"tool_execution_end","toolCallId":"t1","toolName":"bash","result":{"content":[{"type":"text","text":"1\n2\n3\n"}],"details":{"exit":0}},"isError":false}
			{"type":"message_start","message":{"role":"toolResult"}}
			{"type":"message_end","message":{"role":"toolResult"}}`)
		n.finishes(asked, k, "three")
		if calls := bodies[core.ToolCall](n, asked); len(calls) != 1 || calls[0] != (core.ToolCall{ID: "t1", Name: "bash", Input: `{"command":"seq 3"}`}) {
			t.Errorf("got the calls %+v", calls)
		}
		states := bodies[core.ToolState](n, asked)
		if len(states) != 2 || states[0].Detail != "1\n" || states[1].Detail != "2\n" || states[0].State != core.ToolRunning {
			t.Errorf("got the states %+v, want 1 and 2", states)
		}
		if results := bodies[core.ToolResult](n, asked); len(results) != 1 || results[0] != (core.ToolResult{ID: "t1", Output: "1\n2\n3\n"}) {
			t.Errorf("got the results %+v", results)
		}
	})
}

func TestThinkingIsToldOnceEvenIfOnlyItsEndHasIt(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		k.begins()
		k.say(`{"type":"message_update","assistantMessageEvent":{"type":"thinking_delta","contentIndex":0,"delta":"hm"}}`)
		k.say(`{"type":"message_end","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hmm"},{"type":"text","text":"yes"},{"type":"thinking","thinking":"well"}],"stopReason":"length"}}`)
		k.settles()
		n.wants(asked, core.KindDone, "yes")
		var all string
		for _, b := range bodies[core.Thinking](n, asked) {
			all += b.Text + "|"
		}
		if all != "hm|m|well|" {
			t.Errorf("got the thinking %q, want each piece once", all)
		}
		if !asked.Answer().Truncated {
			t.Error("an answer of stopReason length: got it whole, want it truncated")
		}
	})
}

func TestSeveralMessagesOfARunAreOneText(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		k.answers("one, ")
		k.say(`{"type":"message_start","message":{"role":"assistant","content":[]}}`)
		k.ends("two", "stop", "") // without updates
		k.settles()
		n.wants(asked, core.KindDone, "one, two")
	})
}

func TestLinesThatAreLostOrUnknownHarmNobody(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		k.begins()
		k.delta("one ")
		k.say(`a line of a package that prints to stdout`)
		k.delta("three")
		k.say(`{"type":"message_update","assistantMessageEvent":{"type":"text_delta","delta":7}}`, `{"type":7}`, `[]`)
		k.say(`{"type":"a_kind_of_tomorrow","with":{"members":1}}`, `{"type":"response","command":"parse","success":false,"error":"?"}`)
		k.ends("one two three", "stop", "")
		k.say(`this line could have been the end`)
		k.is(idle)
		k.say(`neither is this`)
		time.Sleep(2 * time.Second)
		n.wants(asked, core.KindDone, "one two three")
		frames := bodies[core.ForeignFrame](n, asked)
		if len(frames) != 1 || frames[0] != (core.ForeignFrame{Dialect: "pi-rpc", Name: "a_kind_of_tomorrow"}) {
			t.Errorf("got %+v, want the unknown event", frames)
		}
		for name, want := range map[string]int{"pi-rpc.malformed": 6, "pi-rpc.unknown_event": 1, "pi-rpc.stray": 1} {
			if got := n.counts.of(name); got != want {
				t.Errorf("%s: got %d, want %d", name, got, want)
			}
		}
	})
}

func TestAnAnswerWhoseEndIsLostFailsAsTooLarge(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		k.begins()
		k.delta("one ")
		k.say("lost")
		k.is(idle)
		k.say("lost")
		time.Sleep(2 * time.Second)
		n.fails(asked, core.CodeTooLarge, "with the rest of the answer")
	})
}

func TestATextThatAnExtensionReplacedIsNotLost(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		k.begins()
		k.delta("my password is x")
		k.ends("my password is secret", "stop", "")
		k.settles()
		n.wants(asked, core.KindDone, "my password is x")
		if frames := bodies[core.ForeignFrame](n, asked); len(frames) != 1 || frames[0].Name != "message_end" {
			t.Errorf("got %+v, want the message as pi has it", frames)
		}
	})
}

func TestAPromptThatAnExtensionConsumesEnds(t *testing.T) {
	for name, more := range map[string]string{"old": "", "new": `,"data":{"disposition":"handled"}`} {
		t.Run(name, func(t *testing.T) {
			play(t, pirpc.Options{}, func(n *nursery) {
				asked, k := n.ask(core.Request{Content: "/status"}), <-n.kids
				c := k.next("prompt")
				k.say(`{"id":"` + c.ID + `","type":"response","command":"prompt","success":true` + more + `}`)
				n.wants(asked, core.KindDone, "")
			})
		})
	}
}

func TestAPromptThatPiRefusesFails(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		c := k.next("prompt")
		k.say(`{"id":"` + c.ID + `","type":"response","command":"prompt","success":false,"error":"No API key found for stub."}`)
		n.fails(asked, core.CodeInternal, "No API key found for stub.")
	})
}

func TestARequestIsOnePrompt(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked := n.ask(core.Request{
			Content: "look", Data: []byte(`{"a":1}`), Context: []byte(`{"b":2}`), Domain: "family.calendar", MaxTokens: 7,
			Attachments: []core.File{
				{Name: "x.png", MediaType: "image/png", Data: []byte{1, 2}}, {Name: "y.txt", MediaType: "text/plain", Data: []byte("why ```")},
				{Name: "z.bin", MediaType: "application/octet-stream", Data: []byte{0, 255}},
			},
		})
		k := <-n.kids
		c := k.prompted()
		want := "look\n\nData:\n```json\n{\"a\":1}\n```\n\nContext:\n```json\n{\"b\":2}\n```\n\nFile y.txt:\n````\nwhy ```\n````\n\n" +
			"[file z.bin, application/octet-stream, 2 bytes: not text, left out]\n\nDomain: family.calendar\n\nAnswer in at most 7 tokens."
		if c.Message != want {
			t.Errorf("got %s, want %s", c.Message, want)
		}
		if len(c.Images) != 1 || c.Images[0].Data != "AQI=" || c.Images[0].MimeType != "image/png" {
			t.Errorf("got the images %+v", c.Images)
		}
		n.finishes(asked, k, "ok")
	})
}

// What pi says must not make the hub ask it without end.
func TestARunThatBeginsAndEndsAgainAndAgainIsAskedForItsStateAFewTimes(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		synctest.Wait()
		const runs = 500
		before := k.states
		for range runs { // within no time
			k.say(`{"type":"agent_end","messages":[]}`)
			synctest.Wait()
			k.say(`{"type":"agent_start"}`)
			synctest.Wait()
		}
		if got := k.states - before; got > 15 {
			t.Errorf("the state was asked for %d times after %d ends of a run, want a few times", got, runs)
		}
		if err := n.user.Cancel(asked.ID(), "enough"); err != nil {
			t.Fatal(err)
		}
		aborts := 0
		for range runs {
			k.say(`{"type":"agent_end","messages":[]}`, `{"type":"agent_start"}`)
			synctest.Wait()
			for len(k.commands) > 0 {
				if c := <-k.commands; c.Type == "abort" {
					aborts++
				}
			}
		}
		if aborts < 1 || aborts > 15 {
			t.Errorf("a cancelled run was aborted %d times in %d runs, want a few times", aborts, runs)
		}
		k.is(idle)
		k.say(`{"type":"agent_end","messages":[]}`)
		time.Sleep(time.Minute)
		n.wants(asked, core.KindCancelled, "")
	})
}

func TestACharacterInTwoDeltasIsOne(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		k.begins()
		for _, half := range []string{`a\ud83d`, `\ude00b\ud83d`} {
			k.say(`{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"` + half + `"}}`)
		}
		k.ends("a😀b�", "stop", "")
		k.settles()
		n.wants(asked, core.KindDone, "a😀b�")
	})
}
