package conformance

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpTools are the tools that the suite of MCP asks for by name and that only return something: their
// results, as JSON.
var mcpTools = map[string]string{
	"test_simple_text":       `{"content":[{"type":"text","text":"This is a simple text response for testing."}]}`,
	"test_error_handling":    `{"content":[{"type":"text","text":"This tool intentionally returns an error for testing"}],"isError":true}`,
	"test_image_content":     `{"content":[{"type":"image","data":"iVBORw==","mimeType":"image/png"}]}`,
	"test_audio_content":     `{"content":[{"type":"audio","data":"UklGRg==","mimeType":"audio/wav"}]}`,
	"test_embedded_resource": `{"content":[{"type":"resource","resource":{"uri":"test://embedded-resource","mimeType":"text/plain","text":"This is an embedded resource content."}}]}`,
	"test_multiple_content_types": `{"content":[{"type":"text","text":"Multiple content types test:"},{"type":"image","data":"iVBORw==","mimeType":"image/png"},` +
		`{"type":"resource","resource":{"uri":"test://mixed-content-resource","mimeType":"application/json","text":"{\"test\":\"data\",\"value\":123}"}}]}`,
	"test_logging_tool":        `{"content":[{"type":"text","text":"nothing is logged"}]}`,
	"test_x_mcp_header":        `{"content":[{"type":"text","text":"here"}]}`,
	"json_schema_2020_12_tool": `{"content":[{"type":"text","text":"valid"}]}`,
}

// mcpSchemas are the input schemas of tools; others take any object.
var mcpSchemas = map[string]string{
	"greet":             `{"type":"object","properties":{"name":{"type":"string"}}}`,
	"test_x_mcp_header": `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`,
	// The keywords of this one have to arrive.
	"json_schema_2020_12_tool": `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
	"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
	"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},
		"phone":{"type":"string"},"email":{"type":"string"}},
	"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
	"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},
	"additionalProperties":false}`,
}

// mcpServer starts an MCP server with the tools of the suite, for the hub to have as a pack. It returns its
// address and the names of its tools.
func mcpServer(t *testing.T) (url string, names []string) {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "conformance", Version: "1"}, &sdk.ServerOptions{
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}},
	})
	add := func(name string, serve sdk.ToolHandler) {
		schema := mcpSchemas[name]
		if schema == "" {
			schema = `{"type":"object"}`
		}
		s.AddTool(&sdk.Tool{Name: name, Description: "A tool of the suite.", InputSchema: json.RawMessage(schema)}, serve)
		names = append(names, name)
	}
	for name, returns := range mcpTools {
		add(name, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			var r sdk.CallToolResult
			return &r, json.Unmarshal([]byte(returns), &r)
		})
	}
	for name, forms := range mcpForms {
		add(name, askForms(forms))
	}
	add("greet", func(_ context.Context, q *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var in struct {
			Name string `json:"name"`
		}
		err := json.Unmarshal(q.Params.Arguments, &in)
		return textResult("Hello, " + in.Name + "!"), err
	})
	var changes atomic.Int64
	add("test_trigger_tool_change", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		s.AddTool(&sdk.Tool{Name: "changed_" + strconv.FormatInt(changes.Add(1), 10), Description: "Is new.", InputSchema: json.RawMessage(`{"type":"object"}`)}, returnText("new"))
		return textResult("changed"), nil
	})
	add("test_tool_with_progress", func(ctx context.Context, q *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for _, n := range []float64{0, 50, 100} {
			p := &sdk.ProgressNotificationParams{ProgressToken: q.Params.GetProgressToken(), Progress: n, Total: 100}
			if err := q.Session.NotifyProgress(ctx, p); err != nil {
				return nil, err
			}
			<-time.After(50 * time.Millisecond) // as the suite asks for
		}
		return textResult("done"), nil
	})
	add("test_streaming_elicitation", func(_ context.Context, q *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if len(q.Params.InputResponses) > 0 {
			return textResult("asked"), nil
		}
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"sure": &sdk.ElicitParams{Mode: "form", Message: "Is this what you want?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)}}}, nil
	})
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: true})
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	return srv.URL, names
}

func textResult(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

func returnText(text string) sdk.ToolHandler {
	return func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return textResult(text), nil }
}
