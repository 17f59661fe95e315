package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/dragoman-hub/dragoman/adapters/editor"
	"github.com/dragoman-hub/dragoman/adapters/pi/pitest"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
)

// askAndWait asks over REST and waits for the end.
func askAndWait(ctx context.Context, h *clusterHub, to, key string) (string, error) {
	var task struct {
		ID, State string
		Answer    struct {
			Text  string
			Fault *core.Fault
		}
	}
	if err := h.Post(ctx, "/v1/tasks?wait=true", map[string]string{"to": to, "content": key}, &task); err != nil {
		return "", err
	}
	if task.State != "done" {
		return "", fmt.Errorf("task %s is %s: %w", task.ID, task.State, faultOr(task.Answer.Fault))
	}
	return task.Answer.Text, nil
}

func faultOr(f *core.Fault) error {
	if f == nil {
		return errors.New("without a fault")
	}
	return f
}

// askPiOnce asks in a session that is deleted afterwards.
func askPiOnce(ctx context.Context, h *clusterHub, to, key string) (string, error) {
	text, err := askPiAt(ctx, h, to, key)
	return text, errors.Join(err, deletePiSession(ctx, h, "for-"+key))
}

func deletePiSession(ctx context.Context, h *clusterHub, session string) error {
	conn, err := client.DialWebSocket(ctx, client.Hub{URL: "http://" + h.pi}, "/", nil, 64<<20)
	if err != nil {
		return err
	}
	c, err := pitest.Connect(ctx, conn, func(pitest.Frame) {})
	if err != nil {
		return err
	}
	defer c.Close()
	f, err := c.Do(ctx, map[string]any{"type": "delete_session", "sessionId": session})
	if err == nil && !f.Success {
		err = errors.New(f.Error)
	}
	return err
}

// askMCPTool asks by the tool agent_ask.
func askMCPTool(ctx context.Context, h *clusterHub, to, key string) (string, error) {
	said, err := callTool(ctx, h, "agent_ask", map[string]any{"to": to, "content": key})
	if err != nil {
		return "", err
	}
	var answer struct{ Text string }
	err = json.Unmarshal([]byte(said), &answer)
	return answer.Text, err
}

// askPack calls the tool of the pack; it says what an agent would.
func askPack(ctx context.Context, h *clusterHub, _, key string) (string, error) {
	return callTool(ctx, h, "words.answer", map[string]any{"content": key})
}

// callTool calls a tool by MCP and returns the text of its result. The answer is an event of a stream if
// it takes long.
func callTool(ctx context.Context, h *clusterHub, name string, arguments any) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL+"/mcp", strings.NewReader(string(plainJSON(map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": name, "arguments": arguments},
	}))))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := h.HTTP.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(raw)) {
		var m struct {
			Result struct {
				IsError bool
				Content []struct{ Text string }
			}
		}
		line, _ = strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if json.Unmarshal([]byte(line), &m) != nil || m.Result.IsError || len(m.Result.Content) == 0 {
			continue
		}
		return m.Result.Content[0].Text, nil
	}
	return "", fmt.Errorf("%s: got %s", name, raw)
}

// askEditor asks as an editor does.
func askEditor(ctx context.Context, h *clusterHub, to, key string) (string, error) {
	c, _, err := websocket.Dial(ctx, strings.Replace(h.URL, "http", "ws", 1)+editor.Path+"?agent="+url.QueryEscape(to), nil)
	if err != nil {
		return "", err
	}
	defer c.CloseNow()
	var said strings.Builder
	call := func(id int, method string, params any) (json.RawMessage, error) {
		if err := wsjson.Write(ctx, c, map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}); err != nil {
			return nil, err
		}
		for {
			var m struct {
				ID     *int
				Params struct {
					Update struct {
						SessionUpdate string
						Content       struct{ Text string }
					}
				}
				Result, Error json.RawMessage
			}
			if err := wsjson.Read(ctx, c, &m); err != nil {
				return nil, err
			}
			if m.Params.Update.SessionUpdate == "agent_message_chunk" {
				said.WriteString(m.Params.Update.Content.Text)
			}
			switch {
			case m.ID == nil || *m.ID != id:
			case m.Error != nil:
				return nil, fmt.Errorf("%s: %s", method, m.Error)
			default:
				return m.Result, nil
			}
		}
	}
	if _, err := call(1, "initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}}); err != nil {
		return "", err
	}
	opened, err := call(2, "session/new", map[string]any{"cwd": "/", "mcpServers": []any{}})
	if err != nil {
		return "", err
	}
	var session struct{ SessionID string }
	if err := json.Unmarshal(opened, &session); err != nil {
		return "", err
	}
	prompt := []any{map[string]any{"type": "text", "text": key}}
	ended, err := call(3, "session/prompt", map[string]any{"sessionId": session.SessionID, "prompt": prompt})
	if err == nil && !strings.Contains(string(ended), `"end_turn"`) {
		err = fmt.Errorf("the turn ended as %s", ended)
	}
	return said.String(), err
}
