package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// maxAnswer bounds the body of an answer.
const maxAnswer = 1 << 20

// rpc is a JSON-RPC message of an editor, A2A or MCP: only what the demo looks at.
type rpc struct {
	Method string `json:"method"`
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

// post sends a JSON document and decodes the answer to it.
func post(ctx context.Context, address string, header map[string]string, body, answer any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(answer); err != nil {
		return fmt.Errorf("%s: %w", resp.Status, err)
	}
	return nil
}

// call makes a JSON-RPC request by POST and returns the result.
func call(ctx context.Context, address string, header map[string]string, method string, params object) (json.RawMessage, error) {
	var m rpc
	if err := post(ctx, address, header, object{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, &m); err != nil {
		return nil, err
	}
	if m.Error != nil {
		return nil, errors.New(m.Error.Message)
	}
	return m.Result, nil
}

type object = map[string]any

// overACP asks as a peer of ACP, over HTTP.
func overACP(to client.Hub) client.AskFunc {
	return func(ctx context.Context, other, content string) (string, error) {
		query := object{"v": 1, "id": core.NewID(), "from": "acp-client", "to": other, "kind": "query", "payload": object{"question": content}}
		var reply struct {
			Kind    string `json:"kind"`
			Payload struct {
				Summary string `json:"summary"`
				Message string `json:"message"`
			} `json:"payload"`
		}
		err := post(ctx, to.URL+service.ACPPath, nil, query, &reply)
		if err == nil && reply.Kind != "response" {
			err = errors.New(reply.Payload.Message)
		}
		return reply.Payload.Summary, err
	}
}

// overA2A asks as a client of A2A.
func overA2A(to client.Hub) client.AskFunc {
	return func(ctx context.Context, other, content string) (string, error) {
		message := object{"messageId": core.NewID(), "role": "ROLE_USER", "parts": []object{{"text": content}}}
		result, err := call(ctx, to.URL+"/a2a/"+url.PathEscape(other), map[string]string{"A2A-Version": "1.0"}, "SendMessage", object{"message": message})
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
		result, err := call(ctx, to.URL+"/mcp", map[string]string{"Accept": "application/json, text/event-stream"},
			"tools/call", object{"name": "agent_ask", "arguments": object{"to": other, "content": content}})
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
		call := func(id int, method string, params object) (result json.RawMessage, err error) {
			err = exchange(ctx, conn, object{"jsonrpc": "2.0", "id": id, "method": method, "params": params}, func(m rpc) (bool, error) {
				switch {
				case m.Method == "session/update" && m.Params.Update.Kind == "agent_message_chunk":
					text.WriteString(m.Params.Update.Content.Text)
				case m.Method == "" && m.Error != nil:
					return true, errors.New(m.Error.Message)
				case m.Method == "":
					result = m.Result
					return true, nil
				}
				return false, nil
			})
			return result, err
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

// exchange sends a message and has take read what comes until that reports the answer.
func exchange[M any](ctx context.Context, conn link.Conn[[]byte, []byte], message object, take func(M) (answered bool, err error)) error {
	raw, err := json.Marshal(message)
	if err == nil {
		err = conn.Send(ctx, raw)
	}
	for answered := false; err == nil && !answered; {
		var m M
		if raw, err = conn.Receive(ctx); err != nil {
			return err
		}
		if err = json.Unmarshal(raw, &m); err == nil {
			answered, err = take(m)
		}
	}
	return err
}

// piFrame is a frame of a pi-server: only what the demo looks at.
type piFrame struct {
	Type    string `json:"type"`
	Success bool   `json:"success"`
	Error   string `json:"error"`
	Event   struct {
		Type   string `json:"type"`
		Update struct {
			Type  string `json:"type"`
			Delta string `json:"delta"`
		} `json:"assistantMessageEvent"`
		Message json.RawMessage `json:"message"`
	} `json:"event"`
}

// overPi asks as a client of pi, in a session for each agent.
func overPi(to client.Hub) client.AskFunc {
	return func(ctx context.Context, other, content string) (string, error) {
		conn, err := client.DialWebSocket(ctx, to, "/", nil, maxAnswer)
		if err != nil {
			return "", err
		}
		defer conn.Close(link.Reason{Cause: link.Normal})
		var text strings.Builder
		var failure error
		do := func(kind string, more object) error {
			command := object{"type": kind, "sessionId": "with-" + other}
			maps.Copy(command, more)
			return exchange(ctx, conn, command, func(f piFrame) (bool, error) {
				switch {
				case f.Event.Update.Type == "text_delta":
					text.WriteString(f.Event.Update.Delta)
				case f.Event.Type == "message_end":
					var message struct{ ErrorMessage string }
					if err := json.Unmarshal(f.Event.Message, &message); err == nil && message.ErrorMessage != "" {
						failure = errors.New(message.ErrorMessage)
					}
				case f.Type == "response" && !f.Success:
					return true, errors.New(f.Error)
				}
				return f.Type == "response", nil
			})
		}
		_ = do("create_session", object{"agent": other}) // it may be there
		err = do("switch_session", nil)
		if err == nil {
			err = do("prompt", object{"message": content})
		}
		return text.String(), errors.Join(err, failure)
	}
}
