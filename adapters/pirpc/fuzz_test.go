package pirpc_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pirpc"
	"github.com/dragoman-hub/dragoman/core"
)

// FuzzProcess sends lines to the hub in the middle of a run, each twice, and checks that the task
// ends once pi has settled or its process has ended, and that the next task gets its answer.
func FuzzProcess(f *testing.F) {
	for _, lines := range []string{
		`{"type":"message_start","message":{"role":"assistant","content":[]}}` + "\n" + `{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":1,"delta":"x"}}`,
		`{"type":"message_update","assistantMessageEvent":{"type":"thinking_delta","contentIndex":0,"delta":"x"}}` + "\n" + `{"type":"message_end","message":{"role":"assistant","content":"y","stopReason":"error"}}`,
		`{"type":"tool_execution_start","toolCallId":"t","toolName":"bash"}` + "\n" + `{"type":"extension_ui_request","id":"u","method":"confirm","title":"Go?","timeout":5}`,
		`{"type":"tool_execution_update","toolCallId":"t","partialResult":{"content":"x"}}` + "\n" + `{"type":"tool_execution_end","toolCallId":"t","result":{"content":[{"type":"image"}]}}`,
		`{"type":"extension_ui_request","id":"u","method":"input","title":""}` + "\n" + `{"type":"extension_ui_request","id":"u","method":"select","options":["Allow","Deny"]}`,
		`{"type":"auto_retry_start"}` + "\n" + `{"type":"agent_end","willRetry":true}` + "\n" + `{"type":"agent_start"}`,
		`{"type":"compaction_end","willRetry":true}` + "\n" + `{"type":"agent_end"}` + "\n" + `{"type":"agent_settled"}`,
		`{"id":"d2","type":"response","command":"prompt","success":false}` + "\n" + `{"type":"response","command":"get_state","success":true,"data":{"isStreaming":7}}`,
		`{"type":"queue_update"}` + "\n" + `{"type":"of_tomorrow"}` + "\n" + `garbage` + "\n" + `[]`,
	} {
		f.Add(lines, false)
		f.Add(lines, true)
	}
	f.Fuzz(func(t *testing.T, lines string, dies bool) {
		play(t, pirpc.Options{}, func(n *nursery) {
			asked, k := n.ask(hello()), <-n.kids
			k.prompted()
			drained := make(chan struct{})
			go func() { // whatever the hub sends
				defer close(drained)
				for range k.commands {
				}
			}()
			for line := range strings.Lines(lines) {
				k.say(line, line)
			}
			synctest.Wait()
			if dies {
				k.dies("it ends")
			} else {
				k.is(idle)
				k.say(`{"type":"agent_end","messages":[],"willRetry":false}`, `{"type":"agent_settled"}`)
				time.Sleep(time.Minute) // for what is due later
			}
			synctest.Wait()
			if a := asked.Answer(); !a.End.Ends() {
				t.Errorf("after %q: the task has not ended", lines)
			}
			k.dies("it ends")
			<-drained
			again, next := n.ask(core.Request{Content: "again", Thread: "B"}), <-n.kids
			next.prompted()
			n.finishes(again, next, "ok")
		})
	})
}
