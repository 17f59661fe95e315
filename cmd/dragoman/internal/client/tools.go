package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

const (
	// maxAnswerBytes bounds an answer of the hub to a request of MCP, so that an endless one fails.
	maxAnswerBytes = 1 << 30
	// leaveTime is how long the hub may take to hear that nobody answers the questions of a tool any more.
	leaveTime = time.Second
)

// Tool is a tool that the caller may call.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// Tools returns the tools that the caller may call: those of the hub, then those of packs by name.
func (c *Client) Tools(ctx context.Context) ([]Tool, error) {
	result, err := c.exchange(ctx, mcpRequest{method: wire.MethodListTools})
	if err != nil {
		return nil, err
	}
	var list struct {
		Tools []Tool `json:"tools"`
	}
	return list.Tools, result.Decode(&list)
}

// ToolCall is a call of a tool. Its functions are called by [Client.CallTool], one at a time.
type ToolCall struct {
	Tool  Tool             // without a schema if the hub did not list it
	Input strictjson.Value // an object
	// Told gets what the tool says of its progress.
	Told func(text string)
	// Ask puts a question of the tool to a person; nil if there is nobody.
	Ask func(context.Context, question.Question) (question.Outcome, error)
}

// CallTool calls a tool and returns its result, which may be that of a failure (isError). When ctx ends, the call
// is cancelled. A refusal of the hub is a [Refusal].
func (c *Client) CallTool(ctx context.Context, call ToolCall) (strictjson.Value, error) {
	header := http.Header{}
	if schema, err := strictjson.Parse(call.Tool.InputSchema, strictjson.Limits{}); err == nil {
		mirrored, _ := wire.MirroredIn(schema) // of a wrong schema the hub compares nothing
		for _, m := range mirrored {
			m.Set(header, call.Input)
		}
	}
	params := map[string]any{"name": call.Tool.Name, "arguments": call.Input.Raw()}
	for {
		result, err := c.exchange(ctx, mcpRequest{wire.MethodCallTool, call.Tool.Name, header, params, call.Ask != nil, call.Told})
		if err != nil {
			return result, err
		}
		if kind, _ := result.Get("resultType").Text(); kind != wire.ResultInputRequired {
			return result, nil
		}
		params["requestState"] = result.Get("requestState").Raw()
		if params["inputResponses"], err = call.answers(ctx, result); err != nil {
			return result, err
		}
		if ctx.Err() != nil {
			leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
			defer cancel()
			_, _ = c.exchange(leaving, mcpRequest{wire.MethodCallTool, call.Tool.Name, header, params, false, nil})
			return result, ctx.Err()
		}
	}
}

// answers asks the person what a tool wants to know before it goes on. What nobody answers is cancelled.
func (call ToolCall) answers(ctx context.Context, result strictjson.Value) (map[string]question.Answer, error) {
	all := map[string]question.Answer{}
	for key, asked := range result.Get("inputRequests").Members() {
		e, err := question.Elicit(asked.Get("params"), "", string(key))
		if err != nil {
			return nil, fmt.Errorf("the hub asks what cannot be asked: %w", err)
		}
		if all[string(key)], err = e.Ask(ctx, call.Ask); err != nil {
			all[string(key)] = question.Answer{Action: question.Cancel}
		}
	}
	return all, nil
}

// mcpRequest is a request of [wire.Modern].
type mcpRequest struct {
	method, name string      // the name of a tool, or ""
	header       http.Header // beside those of the protocol
	params       map[string]any
	asks         bool // a person can be asked
	told         func(text string)
}

// exchange sends a request to the hub's MCP server and returns the result.
func (c *Client) exchange(ctx context.Context, r mcpRequest) (strictjson.Value, error) {
	to := c.hub.Client()
	to.Header = r.header.Clone()
	if to.Header == nil {
		to.Header = http.Header{}
	}
	to.Header.Set(wire.HeaderVersion, wire.Modern)
	to.Header.Set(wire.HeaderMethod, r.method)
	if r.name != "" {
		to.Header.Set(wire.HeaderName, wire.EncodeHeader(r.name))
	}
	can := map[string]any{}
	if r.asks {
		can["elicitation"] = struct{}{}
	}
	meta := map[string]any{wire.MetaVersion: wire.Modern, wire.MetaCapabilities: can}
	if r.told != nil {
		meta["progressToken"] = 1
	}
	params := map[string]any{"_meta": meta}
	for name, value := range r.params {
		params[name] = value
	}
	body := map[string]any{"jsonrpc": "2.0", "id": 1, "method": r.method, "params": params}
	resp, err := to.Do(ctx, http.MethodPost, mcp.Path, "application/json, text/event-stream", body)
	if err != nil {
		return strictjson.Value{}, err
	}
	defer resp.Body.Close()
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media != "text/event-stream" {
		text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
		if err != nil {
			return strictjson.Value{}, fmt.Errorf("%w: %w", errCut, err)
		}
		result, _, err := resultIn(text, nil)
		return result, err
	}
	for events := wire.NewEvents(resp.Body, maxAnswerBytes); ; {
		text, err := events.Next()
		if err != nil {
			return strictjson.Value{}, fmt.Errorf("%w: %w", errCut, err)
		}
		if result, done, err := resultIn(text, r.told); done || err != nil {
			return result, err
		}
	}
}

// resultIn returns the result in a message. A message that is none is a notification, of which told gets progress.
func resultIn(text []byte, told func(string)) (result strictjson.Value, done bool, err error) {
	m, bad := jsonrpc.Read(text, strictjson.Limits{Bytes: maxAnswerBytes})
	switch {
	case bad != nil:
		return result, false, fmt.Errorf("the hub sent what is no message of MCP: %w", bad)
	case m.Err != nil:
		return result, true, Refusal{core.NewFault(core.CodeInvalid, "%s", m.Err.Message)}
	case m.Kind() == jsonrpc.Response:
		return m.Result, true, nil
	case told == nil:
		return result, false, errors.New("the hub sent a message that is no result")
	}
	if message, ok := m.Params.Get("message").Text(); ok && m.Method == wire.NoteProgress {
		told(message)
	}
	return result, false, nil
}
