package pack

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// maxErrorBytes is the most of a server's error that is passed on.
const maxErrorBytes = 64 << 10

// output is the output of a tool for its caller, with the members that the results of the
// hub's own tools have: the text of all text blocks, the structured content, and the blocks
// with bytes as files. Content has all other blocks as the server sent them. Callers of MCP get the
// result itself, in which the blocks have their order, annotations and _meta.
type output struct {
	Text    string            `json:"text,omitempty"`
	Data    json.RawMessage   `json:"data,omitempty"`
	Files   []wire.File       `json:"files,omitempty"`
	Content []json.RawMessage `json:"content,omitempty"`
}

// readResult reads a CallToolResult (2026-07-28, server/tools, "Tool Result"; all earlier versions
// are subsets). It returns the output, or a Fault for a result with isError.
func readResult(result strictjson.Value) (json.RawMessage, *core.Fault) {
	if result.Kind() != strictjson.Object {
		return nil, core.NewFault(core.CodeInternal, "the server's result is %.40s: want an object with content", result.Raw())
	}
	var out output
	var texts []string
	for block := range result.Get("content").Items() {
		if text, ok := wire.TextOf(block); ok {
			texts = append(texts, text)
		} else if f, ok := wire.FileOf(block, len(out.Files)+1); ok {
			out.Files = append(out.Files, f)
		} else {
			out.Content = append(out.Content, block.Raw())
		}
	}
	out.Text = strings.Join(texts, "\n")
	if data := result.Get("structuredContent"); data.Exists() {
		out.Data = data.Raw()
	}
	if isTrue(result.Get("isError")) {
		return nil, core.NewFault(core.CodeInternal, "%s", cut(cmp.Or(out.Text, compact(out.Data), "the tool failed and does not say why")))
	}
	if out.Data != nil && compact([]byte(out.Text)) == compact(out.Data) {
		out.Text = "" // servers repeat structured content as text, for older clients
	}
	if out.Text == "" && out.Data == nil && out.Files == nil && out.Content == nil {
		return json.RawMessage(`{"text":""}`), nil
	}
	return strictjson.Encode(out), nil
}

// compact returns JSON without blanks between its values, or "" for what is not JSON.
func compact(text []byte) string {
	var b bytes.Buffer
	if len(text) == 0 || json.Compact(&b, text) != nil {
		return ""
	}
	return b.String()
}

// cut bounds a text of the server.
func cut(text string) string {
	if len(text) <= maxErrorBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxErrorBytes], "") + " …"
}

// faultOf returns the Fault of a JSON-RPC error.
func faultOf(e *jsonrpc.Error) *core.Fault {
	code := core.CodeInternal
	switch e.Code {
	case jsonrpc.CodeInvalidParams:
		code = core.CodeInvalid
	case jsonrpc.CodeMethodNotFound, wire.CodeMissingCapability:
		code = core.CodeUnsupported
	}
	return core.NewFault(code, "%s", cut(cmp.Or(e.Message, fmt.Sprintf("the server failed with the code %d", e.Code))))
}
