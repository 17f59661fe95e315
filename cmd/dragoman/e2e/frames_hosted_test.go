package e2e

import (
	"testing"

	a2awire "github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/adapters/native"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// The programs of agents: each answers what dialects translate in different ways.
const (
	framedEditor = `while read -r line; do case "$line" in
*'"initialize"'*) echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}';;
*'"session/new"'*) echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}';;
*'"session/prompt"'*) s='{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":'
echo "$s"'{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"let me see"}}}}'
echo "$s"'{"sessionUpdate":"tool_call","toolCallId":"t1","title":"search","status":"pending","rawInput":{"for":"it"}}}}'
echo "$s"'{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"found"}}]}}}'
echo "$s"'{"sessionUpdate":"plan","entries":[]}}}'
echo "$s"'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"It is here."}}}}'
echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":4,"totalTokens":7}}}';;
esac; done`
	framedPi = `while read -r line; do id=${line#*'"id":"'}; id=${id%%'"'*}; case "$line" in
*'"get_state"'*) echo '{"type":"response","id":"'$id'","command":"get_state","success":true,"data":{"sessionId":"s","isStreaming":false}}';;
*'"prompt"'*) echo '{"type":"response","id":"'$id'","command":"prompt","success":true,"data":{"disposition":"started"}}'
echo '{"type":"agent_start"}'
echo '{"type":"message_start","message":{"role":"assistant","content":[]}}'
echo '{"type":"message_update","assistantMessageEvent":{"type":"thinking_delta","contentIndex":0,"delta":"let me see"}}'
echo '{"type":"tool_execution_start","toolCallId":"t1","toolName":"search","args":{"for":"it"}}'
echo '{"type":"tool_execution_end","toolCallId":"t1","toolName":"search","result":{"content":[{"type":"text","text":"found"}]},"isError":false}'
echo '{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":1,"delta":"It is here."}}'
echo '{"type":"message_end","message":{"role":"assistant","content":[{"type":"thinking","thinking":"let me see"},{"type":"text","text":"It is here."}],"stopReason":"stop","usage":{"input":3,"output":4}}}'
echo '{"type":"agent_end","messages":[],"willRetry":false}'
echo '{"type":"agent_settled","aborted":false}';;
esac; done`
)

// A question to an agent that the hub itself runs or connects to shows what the hub and the agent
// told each other, as in testdata/frames.
func TestTheFramesOfATaskShowAgentsThatTheHubRuns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		agent config.Agent
		start func(t *testing.T, a *config.Agent)
	}{
		{agent: config.Agent{Dialect: config.SpeaksText, Process: shellProcess(`cat >/dev/null; printf 'It is here.'`)}},
		{agent: config.Agent{Dialect: config.SpeaksEditor, Process: shellProcess(framedEditor)}},
		{agent: config.Agent{Dialect: config.SpeaksPiRPC, Process: shellProcess(framedPi)}},
		{agent: config.Agent{Dialect: a2awire.Dialect}, start: func(t *testing.T, a *config.Agent) {
			far := newTestHub(t, nil)
			far.startAgentWith(t, native.Dialect, "kit", far.reportEverything)
			a.URL = far.url() + "/a2a/kit"
		}},
	} {
		t.Run(tt.agent.Dialect, func(t *testing.T) {
			tt.agent.Name = "guide"
			if tt.start != nil {
				tt.start(t, &tt.agent)
			}
			h := newTestHub(t, func(c *config.Config) {
				keepFrames(c)
				c.Agents = config.Agents{tt.agent}
			})
			asker := nativeOverWebSocket().connect(t, h, "asker")
			t.Cleanup(asker.leave)
			asker.begin(query{to: "guide", content: "look it up"}).wait(t)
			h.wantFrames(t, "native WebSocket-"+tt.agent.Dialect+" hosted")
		})
	}
}

func shellProcess(text string) config.Process {
	return config.Process{Command: []string{"sh", "-c", text}}
}
