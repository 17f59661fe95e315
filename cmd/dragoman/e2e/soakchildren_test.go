package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// playsChild is the variable that makes the test binary a child of the hub, which speaks what it
// names: text, native, editor, pi, or MCP as a pack.
const playsChild = "TEST_PLAYS_CHILD"

// toldBeside is a request to say also what a dialect of the hub may have no words for.
const toldBeside = "beside"

// child is a program that the hub runs. It answers every request with slowAnswer.
type child struct {
	mu  sync.Mutex
	out io.Writer
}

func playChild(speaks string) {
	c := &child{out: os.Stdout}
	if speaks == "text" {
		asked, _ := io.ReadAll(os.Stdin)
		_, _ = io.WriteString(c.out, slowAnswer(strings.TrimSpace(string(asked))))
		return
	}
	handle := map[string]func(map[string]any){"native": c.native, "editor": c.editor, "pi": c.pi, "pack": c.pack}[speaks]
	if speaks == "native" {
		card := map[string]any{"features": []string{"streaming"}, "max_concurrent": 8}
		c.say(map[string]any{"call": map[string]any{"id": "1", "act": "join", "command": map[string]any{"card": card}}})
	}
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var m map[string]any
		if json.Unmarshal(line, &m) == nil {
			handle(m)
		}
	}
}

func (c *child) say(line any) {
	b, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.out.Write(append(b, '\n')) // a hub that has gone closes stdin too
}

// at returns the member of an object, by names.
func at(m any, names ...string) any {
	for _, n := range names {
		object, _ := m.(map[string]any)
		m = object[n]
	}
	return m
}

func textAt(m any, names ...string) string { s, _ := at(m, names...).(string); return s }

// words are the chunks of the answer; "flood N SIZE" asks for N of a size.
func words(asked string) (all []string) {
	var n, size int
	if _, err := fmt.Sscanf(asked, "flood %d %d", &n, &size); err != nil {
		return strings.SplitAfter(slowAnswer(asked), " ")
	}
	for i := range n {
		all = append(all, floodChunk(i, size))
	}
	return all
}

// floodChunk is a chunk of so many bytes.
func floodChunk(i, size int) string { return fmt.Sprintf("%0*d ", size-1, i) }

func (c *child) reply(id, result any) {
	c.say(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
}

// editor speaks the protocol of editors.
func (c *child) editor(m map[string]any) {
	switch textAt(m, "method") {
	case "initialize":
		c.reply(m["id"], map[string]any{"protocolVersion": 1, "agentCapabilities": map[string]any{}, "authMethods": []any{}})
	case "session/new":
		c.reply(m["id"], map[string]any{"sessionId": fmt.Sprintf("s%v", m["id"])})
	case "session/prompt":
		var asked string
		blocks, _ := at(m, "params", "prompt").([]any)
		for _, b := range blocks {
			asked += textAt(b, "text")
		}
		update := func(kind string, more map[string]any) {
			more["sessionUpdate"] = kind
			c.say(map[string]any{"jsonrpc": "2.0", "method": "session/update", "params": map[string]any{"sessionId": at(m, "params", "sessionId"), "update": more}})
		}
		if asked == toldBeside {
			update("plan", map[string]any{"entries": []any{map[string]any{"content": "think", "priority": "high", "status": "pending"}}})
			update("available_commands_update", map[string]any{"availableCommands": []any{}})
			update("from_the_future", map[string]any{"mood": "fine"})
		}
		for _, w := range words(asked) {
			update("agent_message_chunk", map[string]any{"content": map[string]any{"type": "text", "text": w}})
		}
		c.reply(m["id"], map[string]any{"stopReason": "end_turn"})
	case "session/cancel", "":
	default:
		c.say(map[string]any{"jsonrpc": "2.0", "id": m["id"], "error": map[string]any{"code": -32601, "message": "Method not found"}})
	}
}

// pi speaks the RPC of pi.
func (c *child) pi(m map[string]any) {
	kind := textAt(m, "type")
	if kind == "extension_ui_response" {
		return
	}
	c.say(map[string]any{"type": "response", "id": m["id"], "command": kind, "success": true, "data": map[string]any{"sessionId": "s", "isStreaming": false, "disposition": "started"}})
	if kind != "prompt" {
		return
	}
	asked := textAt(m, "message")
	c.say(map[string]any{"type": "agent_start"})
	if asked == toldBeside {
		c.say(map[string]any{"type": "extension_ui_request", "id": "u", "method": "setStatus", "statusKey": "k", "statusText": "fine"})
		c.say(map[string]any{"type": "from_the_future", "mood": "fine"})
	}
	c.say(map[string]any{"type": "message_start", "message": map[string]any{"role": "assistant", "content": []any{}}})
	for _, w := range words(asked) {
		c.say(map[string]any{"type": "message_update", "assistantMessageEvent": map[string]any{"type": "text_delta", "contentIndex": 0, "delta": w}})
	}
	c.say(map[string]any{"type": "message_end", "message": map[string]any{
		"role": "assistant", "content": []any{map[string]any{"type": "text", "text": slowAnswer(asked)}}, "stopReason": "stop",
		"usage": map[string]any{"input": 1, "output": 1},
	}})
	c.say(map[string]any{"type": "agent_end", "messages": []any{}, "willRetry": false})
	c.say(map[string]any{"type": "agent_settled", "aborted": false})
}

// pack is an MCP server with one tool.
func (c *child) pack(m map[string]any) {
	switch textAt(m, "method") {
	case "initialize":
		c.reply(m["id"], map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]any{"name": "words", "version": "1"}})
	case "tools/list":
		c.reply(m["id"], map[string]any{"tools": []any{map[string]any{"name": "answer", "description": "answers", "inputSchema": map[string]any{
			"type": "object", "properties": map[string]any{"content": map[string]any{"type": "string"}}, "required": []string{"content"},
		}}}})
	case "tools/call":
		c.reply(m["id"], map[string]any{"content": []any{map[string]any{"type": "text", "text": slowAnswer(textAt(m, "params", "arguments", "content"))}}})
	case "ping":
		c.reply(m["id"], map[string]any{})
	default:
		if m["id"] != nil {
			c.say(map[string]any{"jsonrpc": "2.0", "id": m["id"], "error": map[string]any{"code": -32601, "message": "Method not found"}})
		}
	}
}

// native speaks the dialect of the hub.
func (c *child) native(m map[string]any) {
	e, is := m["event"].(map[string]any)
	if !is || textAt(e, "kind") != "opened" {
		return
	}
	say := func(kind string, body map[string]any) {
		c.say(map[string]any{"event": map[string]any{"task": e["task"], "kind": kind, "body": body}})
	}
	for _, w := range words(textAt(e, "body", "request", "content")) {
		say("text", map[string]any{"text": w})
	}
	say("done", map[string]any{})
}
