package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	editor "github.com/dragoman-hub/dragoman/adapters/editor/client"
	editorwire "github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/host"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// editorAgentName is the matrix's name for agents of the editor's protocol, which the hub starts.
const editorAgentName = "editor"

// editorCases are the cases that make sense for them: the protocol has no structured data and no
// injection, and the end of a process has tests of its own.
var editorCases = map[string]bool{"short text": true, "burst": true, "900 KB": true, "cancel": true, "deadline": true, "approval": true, "file": true}

func TestEveryDialectAsksAnEditorAgent(t *testing.T) {
	for _, asks := range clientDialects() {
		t.Run(asks.name, func(t *testing.T) {
			t.Parallel()
			h := newTestHub(t, func(c *config.Config) {
				c.Pi.Retries, c.Pi.Breakers.AgentFailures, c.Pi.Rates = 0, 0, config.PiRates{}
			})
			d := &pair{testHub: h, asks: asks, answers: editorAgentName, agent: editorAgentName + "-agent"}
			h.startAgent(t, d.answers, d.agent, 4)
			d.requester = asks.connect(t, h, "asker")
			t.Cleanup(d.leave)
			for _, c := range cases {
				if editorCases[c.name] {
					t.Run(c.name, func(t *testing.T) { t.Logf("%s: %s", c.name, c.run(t, d)) })
				}
			}
		})
	}
}

// startEditorAgent starts an agent that handles instructions, behind the hub's client of the
// editor's protocol. It is stopped when the test ends.
func (h *testHub) startEditorAgent(t *testing.T, id core.AgentID, concurrent int) {
	t.Helper()
	near, far := coretest.Pipe[[]byte, []byte](64)
	a := editor.New(editor.Options{Dir: "/", Dial: func(context.Context, ...string) (link.Conn[[]byte, []byte], error) { return near, nil }})
	s := h.service.Hub().Connect(hub.Identity{Principal: core.Principal{ID: string(id)}, Dialect: editorAgentName})
	ctx, stop := context.WithCancel(context.Background())
	var group sync.WaitGroup
	program := &editorProgram{testHub: h, conn: far, asked: map[string]string{}, turns: map[string]context.CancelFunc{}}
	group.Go(func() { program.run(ctx, &group) })
	group.Go(func() {
		_ = a.Run(ctx, func(p agent.Profile) {
			card := core.Card{ID: id, Name: "the agent " + string(id), Capabilities: []string{"acting"}, MaxConcurrent: concurrent, Features: p.Features}
			if err := s.Join(card, hub.JoinOptions{}); err != nil {
				t.Error(err)
			}
			group.Go(func() { _ = host.Serve(ctx, s, a, nil) })
		})
	})
	t.Cleanup(func() {
		stop()
		_ = far.Close(link.Reason{Cause: link.Normal})
		group.Wait()
		s.Close(nil)
	})
	h.await(t, "joined "+string(id))
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

func (p *editorProgram) run(ctx context.Context, group *sync.WaitGroup) {
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
	err := p.handle(ctx, core.Request{Content: content}, func(b core.Body) error { return p.say(session, b) })
	switch {
	case ctx.Err() != nil:
		p.reply(m.ID, `{"stopReason":"cancelled"}`)
	case err != nil:
		p.send(jsonrpc.AppendError(nil, m.ID, jsonrpc.Errorf(jsonrpc.CodeInternalError, "%v", err)))
	default:
		p.reply(m.ID, `{"stopReason":"end_turn"}`)
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
		p.send(editorwire.AppendChunk(nil, session, editorwire.UpdateAgentChunk, b.Text, nil))
	case core.File:
		return update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"resource","resource":{"uri":"file:///%s","mimeType":%q,"text":%q}}}`, b.Name, b.MediaType, b.Data)
	case core.ToolCall:
		return update(`{"sessionUpdate":"tool_call","toolCallId":%q,"title":%q,"status":"pending","rawInput":%s}`, b.ID, b.Name, b.Input)
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
