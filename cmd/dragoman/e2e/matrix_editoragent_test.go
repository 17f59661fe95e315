package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	editor "github.com/dragoman-hub/dragoman/adapters/editor/client"
	editorwire "github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Every dialect that can ask, with agents of the editor's protocol, whose program is the other end
// of a pipe.
func TestEveryDialectAsksAnEditorAgent(t *testing.T) {
	t.Parallel()
	askEach(t, editorProtocolAgents())
}

// editorProtocolAgents are agents of the editor's protocol. It has no field for structured data, no context
// for a turn that runs, one sum of tokens for a turn, and the error codes of JSON-RPC.
func editorProtocolAgents() *agentDialect {
	return &agentDialect{
		name: editorwire.Dialect, start: startEditorAgent,
		fences: true, folds: "editor.folded.opened", approvals: true, lost: "the agent was lost",
		reports: map[string]func([]string) []string{"tool": except("pending", "completed"), "usage": sum}, // a call is pending, and a result completes it
		failed: func(f *core.Fault) *core.Fault {
			code := core.CodeInternal
			switch f.Code {
			case core.CodeInvalid, core.CodeUnsupported:
				code = f.Code
			case core.CodeUnauthenticated:
				return core.NewFault(f.Code, "the prompt: the agent wants to be authenticated (%s): it names no methods: log in with the agent's own program, or set the variables that it reads its key from", f.Message)
			}
			return core.NewFault(code, "the prompt: the agent answered: %s", f.Message)
		},
	}
}

// editorCodes are the codes that a program of the protocol has for failures; it has one for all others.
var editorCodes = map[core.Code]int{
	core.CodeInvalid: jsonrpc.CodeInvalidParams, core.CodeUnsupported: jsonrpc.CodeMethodNotFound, core.CodeUnauthenticated: editorwire.CodeAuthRequired,
}

// startEditorAgent starts an agent that handles instructions, behind the hub's client of the
// editor's protocol.
func startEditorAgent(t *testing.T, h *testHub, id core.AgentID, concurrent int) (cut func()) {
	t.Helper()
	near, far := coretest.Pipe[[]byte, []byte](64)
	program := &editorProgram{testHub: h, conn: far, asked: map[string]string{}, turns: map[string]context.CancelFunc{}}
	var running sync.WaitGroup
	running.Go(program.run)
	cut = func() { _ = far.Close(link.Reason{Cause: link.Normal}) }
	t.Cleanup(func() {
		cut()
		running.Wait()
	})
	a := editor.New(editor.Options{
		Dir: "/", Count: h.service.Hub().Count,
		Dial: func(context.Context, ...string) (link.Conn[[]byte, []byte], error) { return near, nil },
	})
	h.hostAgent(t, a, core.Card{ID: id, Dialect: editorwire.Dialect, MaxConcurrent: concurrent})
	return cut
}

// editorProgram is the program at the other end.
type editorProgram struct {
	*testHub
	conn *coretest.End[[]byte, []byte]

	mu    sync.Mutex
	ids   int
	asked map[string]string             // the open permission requests: the tool call of each id
	turns map[string]context.CancelFunc // by session
}

// run handles messages until the connection has ended, and every turn with it.
func (p *editorProgram) run() {
	ctx, stop := context.WithCancel(context.Background())
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	for {
		line, err := p.conn.Receive(ctx)
		if err != nil {
			return
		}
		m, fault := jsonrpc.Read(line, strictjson.Limits{})
		if fault != nil {
			panic(fault)
		}
		session, _ := m.Params.Get("sessionId").Text()
		switch m.Method {
		case editorwire.MethodInitialize:
			p.reply(m.ID, `{"protocolVersion":1}`)
		case editorwire.MethodSessionNew:
			p.mu.Lock()
			p.ids++
			id := p.ids
			p.mu.Unlock()
			p.reply(m.ID, fmt.Sprintf(`{"sessionId":"s%d"}`, id))
		case editorwire.MethodSessionPrompt:
			turn, cancel := context.WithCancel(ctx)
			p.mu.Lock()
			p.turns[session] = cancel
			p.mu.Unlock()
			group.Go(func() {
				defer cancel()
				p.turn(turn, session, m)
			})
		case editorwire.MethodSessionCancel:
			p.mu.Lock()
			if cancel := p.turns[session]; cancel != nil {
				cancel()
			}
			p.mu.Unlock()
		case "":
			p.mu.Lock()
			tool, waits := p.asked[string(m.ID)]
			p.mu.Unlock()
			if option, _ := m.Result.Get("outcome", "optionId").Text(); waits {
				p.signal(tool+" decided", option == editorwire.AllowOnce)
			}
		}
	}
}

// send sends a line; who reads may have left.
func (p *editorProgram) send(line []byte) { _ = p.conn.Send(context.Background(), line) }

func (p *editorProgram) reply(id json.RawMessage, result string) {
	p.send(jsonrpc.AppendResult(nil, id, json.RawMessage(result)))
}

// turn handles a prompt.
func (p *editorProgram) turn(ctx context.Context, session string, m jsonrpc.Message) {
	in, fault := editorwire.Read[editorwire.PromptRequest](m.Params)
	if fault != nil {
		p.send(jsonrpc.AppendError(nil, m.ID, fault))
		return
	}
	content := in.Prompt[len(in.Prompt)-1].Text
	result := editorwire.PromptResponse{StopReason: editorwire.StopEndTurn}
	err := p.handle(ctx, core.Request{Content: content}, func(b core.Body) error {
		if u, is := b.(core.Usage); is {
			if result.Usage == nil {
				result.Usage = &editorwire.Usage{}
			}
			result.Usage.InputTokens += u.Input
			result.Usage.OutputTokens += u.Output
			result.Usage.ThoughtTokens += u.Thinking
			return nil
		}
		return p.say(session, b)
	})
	switch {
	case ctx.Err() != nil:
		p.reply(m.ID, `{"stopReason":"cancelled"}`)
	case err != nil:
		f := core.AsFault(err)
		p.send(jsonrpc.AppendError(nil, m.ID, jsonrpc.Errorf(cmp.Or(editorCodes[f.Code], jsonrpc.CodeInternalError), "%s", f.Message)))
	default:
		p.send(jsonrpc.AppendResult(nil, m.ID, strictjson.Encode(result)))
	}
}

// say sends an event as the protocol has it.
func (p *editorProgram) say(session string, body core.Body) error {
	update := func(format string, args ...any) error {
		p.send(editorwire.AppendUpdate(nil, session, json.RawMessage(fmt.Sprintf(format, args...))))
		return nil
	}
	switch b := body.(type) {
	case core.Text:
		p.send(editorwire.AppendChunk(nil, session, editorwire.UpdateAgentMessageChunk, b.Text, nil))
	case core.Done:
		p.send(editorwire.AppendChunk(nil, session, editorwire.UpdateAgentMessageChunk, "\n\nData:\n````json\n"+string(b.Data)+"\n````", nil))
	case core.File:
		return update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"resource","resource":{"uri":"file:///%s","mimeType":%q,"text":%q}}}`, b.Name, b.MediaType, b.Data)
	case core.ToolCall:
		return update(`{"sessionUpdate":"tool_call","toolCallId":%q,"title":%q,"status":"pending","rawInput":%s}`, b.ID, b.Name, b.Input)
	case core.ToolState:
		if b.State == core.ToolRunning { // tool_call said that it was pending, and the result says that it is completed
			return update(`{"sessionUpdate":"tool_call_update","toolCallId":%q,"status":"in_progress"}`, b.ID)
		}
	case core.ToolResult:
		return update(`{"sessionUpdate":"tool_call_update","toolCallId":%q,"status":"completed","content":[{"type":"content","content":{"type":"text","text":%q}}]}`, b.ID, b.Output)
	case core.ApprovalRequested:
		id := "p-" + b.ID
		p.mu.Lock()
		p.asked[`"`+id+`"`] = b.ID
		p.mu.Unlock()
		p.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%q,"method":"session/request_permission","params":{"sessionId":%q,"toolCall":{"toolCallId":%q},"options":[{"optionId":"allow_once","name":"Allow","kind":"allow_once"},{"optionId":"reject_once","name":"Reject","kind":"reject_once"}]}}`, id, session, b.ID))
	default:
		return core.NewFault(core.CodeUnsupported, "%s", strings.ToUpper(body.Kind().String()))
	}
	return nil
}
