package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// maxAnswer bounds the body of an answer.
const maxAnswer = 1 << 20

// rpc is a JSON-RPC message of any of the three protocols: only what the demo looks at.
type rpc struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Update struct {
			Kind    string `json:"sessionUpdate"`
			Content struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"update"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// post sends a JSON-RPC request and returns the result.
func post(ctx context.Context, address string, header map[string]string, body any) (json.RawMessage, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	raw, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	var m rpc
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("%s: %w", resp.Status, err)
	}
	if m.Error != nil {
		return nil, errors.New(m.Error.Message)
	}
	return m.Result, nil
}

type object = map[string]any

// overA2A asks as a client of A2A.
func overA2A(to client.Hub) client.AskFunc {
	return func(ctx context.Context, other, content string) (string, error) {
		message := object{"messageId": core.NewID(), "role": "ROLE_USER", "parts": []object{{"text": content}}}
		result, err := post(ctx, to.URL+"/a2a/"+url.PathEscape(other), map[string]string{"A2A-Version": "1.0"},
			object{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": object{"message": message}})
		if err != nil {
			return "", err
		}
		var sent struct {
			Task struct {
				Artifacts []struct {
					Parts []struct {
						Text string `json:"text"`
					} `json:"parts"`
				} `json:"artifacts"`
			} `json:"task"`
		}
		err = json.Unmarshal(result, &sent)
		var text strings.Builder
		for _, a := range sent.Task.Artifacts {
			for _, p := range a.Parts {
				text.WriteString(p.Text)
			}
		}
		return text.String(), err
	}
}

// overMCP asks as a client of MCP, by the tool agent_ask.
func overMCP(to client.Hub) client.AskFunc {
	return func(ctx context.Context, other, content string) (string, error) {
		result, err := post(ctx, to.URL+"/mcp", map[string]string{"Accept": "application/json, text/event-stream"},
			object{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": object{"name": "agent_ask", "arguments": object{"to": other, "content": content}}})
		if err != nil {
			return "", err
		}
		var called struct {
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
		}
		if err := json.Unmarshal(result, &called); err != nil || len(called.Content) == 0 {
			return "", errors.Join(err, errors.New("the result has no content"))
		}
		var answer struct {
			Text string `json:"text"`
		}
		err = json.Unmarshal([]byte(called.Content[0].Text), &answer)
		return answer.Text, err
	}
}

// overEditor asks as an editor.
func overEditor(to client.Hub) client.AskFunc {
	return func(ctx context.Context, other, content string) (string, error) {
		conn, err := client.DialWebSocket(ctx, to, "/ws/editor?agent="+url.QueryEscape(other), nil, maxAnswer)
		if err != nil {
			return "", err
		}
		defer conn.Close(link.Reason{Cause: link.Normal})
		var text strings.Builder
		call := func(id int, method string, params object) (json.RawMessage, error) {
			raw, err := json.Marshal(object{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
			if err == nil {
				err = conn.Send(ctx, raw)
			}
			for err == nil {
				var m rpc
				if raw, err = conn.Receive(ctx); err != nil {
					break
				}
				if err = json.Unmarshal(raw, &m); err != nil {
					break
				}
				switch {
				case m.Method == "session/update" && m.Params.Update.Kind == "agent_message_chunk":
					text.WriteString(m.Params.Update.Content.Text)
				case m.Method == "" && m.Error != nil:
					return nil, errors.New(m.Error.Message)
				case m.Method == "" && string(m.ID) == fmt.Sprint(id):
					return m.Result, nil
				}
			}
			return nil, err
		}
		if _, err := call(1, "initialize", object{"protocolVersion": 1, "clientCapabilities": object{}}); err != nil {
			return "", err
		}
		result, err := call(2, "session/new", object{"cwd": "/", "mcpServers": []object{}})
		if err != nil {
			return "", err
		}
		var session struct {
			ID string `json:"sessionId"`
		}
		if err := json.Unmarshal(result, &session); err != nil {
			return "", err
		}
		_, err = call(3, "session/prompt", object{"sessionId": session.ID, "prompt": []object{{"type": "text", "text": content}}})
		return text.String(), err
	}
}
