package conformance

import (
	"context"
	"encoding/json"
	"strconv"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// form is what a tool asks the user of its client.
type form struct{ name, message, schema string }

// mcpForms are the tools of the suite that ask users, one form after the other.
var mcpForms = map[string][]form{
	"test_elicitation": {{"user", "Please provide your information", `{"type":"object","properties":{"username":{"type":"string"},"email":{"type":"string","format":"email"}},"required":["username","email"]}`}},
	"test_elicitation_sep1034_defaults": {{"person", "Who is it?", `{"type":"object","properties":{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},
		"score":{"type":"number","default":95.5},"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}}`}},
	"test_elicitation_sep1330_enums": {{"choices", "Which ones?", `{"type":"object","properties":{"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
		"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
		"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
		"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},
		"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}}`}},
	"test_input_required_result_elicitation": {{"user_name", "What is your name?", `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`}},
	"test_input_required_result_multi_round": {
		{"step1", "Step 1: What is your name?", `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`},
		{"step2", "Step 2: What is your favorite color?", `{"type":"object","properties":{"color":{"type":"string"}},"required":["color"]}`},
	},
	"test_input_required_result_request_state":  {{"confirm", "Please confirm", `{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`}},
	"test_input_required_result_tampered_state": {{"confirm", "Please confirm", `{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`}},
}

// askForms serves a tool that asks for forms; its state is the number of the form that it has asked for.
func askForms(forms []form) sdk.ToolHandler {
	return func(_ context.Context, q *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		asked := 0
		if q.Params.RequestState != "" {
			var err error
			if asked, err = strconv.Atoi(q.Params.RequestState); err != nil {
				return nil, err
			}
		}
		if asked < len(forms) {
			f := forms[asked]
			return &sdk.CallToolResult{RequestState: strconv.Itoa(asked + 1), InputRequests: sdk.InputRequestMap{
				f.name: &sdk.ElicitParams{Mode: "form", Message: f.message, RequestedSchema: json.RawMessage(f.schema)},
			}}, nil
		}
		said, err := json.Marshal(q.Params.InputResponses)
		return textResult("state-ok: " + string(said)), err
	}
}
