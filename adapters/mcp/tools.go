package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/tool"
	"github.com/dragoman-hub/dragoman/schemas"
)

// serveTools handles the methods that the SDK cannot: the tools depend on the caller and may
// change at any time.
func (s *Server) serveTools(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch method {
		case methodListTools:
			return list(requestOf(ctx).holder.session.Tools()), nil
		case methodCallTool:
			return s.callTool(requestOf(ctx), req.(*sdk.CallToolRequest).Params)
		}
		return next(ctx, method, req)
	}
}

func list(tools []tool.Definition) *sdk.ListToolsResult {
	// Other callers may have other tools.
	out := &sdk.ListToolsResult{Cacheable: sdk.Cacheable{CacheScope: "private"}, Tools: []*sdk.Tool{}}
	for _, t := range tools {
		out.Tools = append(out.Tools, &sdk.Tool{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema})
	}
	return out
}

// callTool calls a tool on behalf of the caller. A failure of the tool is a result, which the
// model reads, not a protocol error, which it may never see.
func (s *Server) callTool(r *request, p *sdk.CallToolParamsRaw) (sdk.Result, error) {
	tools := r.holder.session.Tools()
	i := slices.IndexFunc(tools, func(t tool.Definition) bool { return t.Name == p.Name })
	if i < 0 {
		s.hub.Count(Name + ".refused.unknown_tool")
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %.100q: tools/list tells which there are", p.Name)}
	}
	input := bytes.TrimSpace(p.Arguments)
	if len(input) == 0 || string(input) == "null" {
		input = []byte("{}")
	}
	if err := s.inputs.check(tools[i].InputSchema, input); err != nil {
		return s.failed(core.NewFault(core.CodeInvalid, "invalid input for %s: %s", p.Name, err), nil), nil
	}
	ctx, end, refused := r.begin(r.client, &call{session: r.session, id: r.id})
	if refused != nil {
		return s.failed(refused, nil), nil
	}
	defer end()
	r.running(p.Name)
	late := core.NewFault(core.CodeTimeout, "%s took longer than %s and was stopped: use agent_delegate and agent_result for long work", p.Name, s.opts.CallTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.CallTimeout, late)
	defer cancel()
	out, err := r.holder.session.Call(ctx, p.Name, input)
	switch {
	case err != nil:
		return s.failed(core.AsFault(err), nil), nil
	case out.Fault != nil:
		return s.failed(out.Fault, out.Output), nil
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(out.Output)}}}, nil
}

// failed is the result of a tool that failed, with its output so far.
func (s *Server) failed(f *core.Fault, output json.RawMessage) *sdk.CallToolResult {
	s.hub.Count(Name + ".failed." + string(f.Code))
	r := &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: f.Error()}}}
	if len(output) > 0 {
		r.Content = append(r.Content, &sdk.TextContent{Text: string(output)})
	}
	return r
}

// inputs validates inputs against the schemas of tools, and compiles each schema once.
type inputs struct {
	mu     sync.Mutex
	checks map[string]func([]byte) error // by the text of the schema
}

// maxChecks is the maximum number of compiled schemas, since packs change.
const maxChecks = 1024

// check validates an input; its error names the field. If the schema cannot be compiled, the
// tool has to check.
func (s *inputs) check(schema, input json.RawMessage) error {
	s.mu.Lock()
	check, known := s.checks[string(schema)]
	if !known {
		if len(s.checks) >= maxChecks || s.checks == nil {
			s.checks = make(map[string]func([]byte) error)
		}
		check, _ = schemas.Compile(schema)
		s.checks[string(schema)] = check
	}
	s.mu.Unlock()
	if check == nil {
		return nil
	}
	return check(input)
}
