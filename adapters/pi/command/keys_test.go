package command_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

func TestAKeyInAnotherCaseIsRefused(t *testing.T) {
	for _, tt := range []struct{ frame, want string }{
		{`{"Type":"health_check"}`, "Type: Unknown key, did you mean 'type'?; type: Command must have a string 'type' field"},
		{
			`{"type":"prompt","SessionID":"s","message":"x"}`,
			"SessionID: Unknown key, did you mean 'sessionId'?; sessionId: Session commands must have a non-empty string 'sessionId'",
		},
		{
			`{"type":"prompt","sessionId":"s","MESSAGE":"x","Message":"y","message":"z"}`,
			"MESSAGE: Unknown key, did you mean 'message'?; Message: Unknown key, did you mean 'message'?",
		},
		{`{"type":"prompt","sessionId":"s","message":"x","streamingbehavior":"steer"}`, "streamingbehavior: Unknown key, did you mean 'streamingBehavior'?"},
		{
			`{"type":"steer","sessionId":"s","message":"x","images":[7,{"data":"","mimeType":"a/b"},{"Data":"","mimetype":"a/b"}]}`,
			"images[2].Data: Unknown key, did you mean 'data'?; images[2].mimetype: Unknown key, did you mean 'mimeType'?",
		},
		{
			`{"type":"extension_ui_response","sessionId":"s","requestId":"r","response":{"method":"confirm","Confirmed":true}}`,
			"response.Confirmed: Unknown key, did you mean 'confirmed'?",
		},
		{`{"type":"navigate_tree","sessionId":"s","targetId":"t","options":{"Label":"l"}}`, "options.Label: Unknown key, did you mean 'label'?"},
		{`{"type":"nope","Id":"1"}`, "Id: Unknown key, did you mean 'id'?; type: Unknown command type 'nope'"},
		{"{\"type\":\"delete_session\",\"\u017fe\u017f\u017fionId\":\"s\"}", "\u017fe\u017f\u017fionId: Unknown key, did you mean 'sessionId'?; sessionId: Required non-empty string"},
		// Keys that are not like any of the command are ignored.
		{`{"type":"health_check","Message":"x","session_id":"s","x-trace":{"Type":1}}`, ""},
		{`{"type":"prompt","sessionId":"s","message":"x","images":"none","Provider":"p"}`, ""},
		{`{"type":"extension_ui_response","sessionId":"s","requestId":"r","response":{"method":"interview","responses":{"Method":1}}}`, ""},
	} {
		if got := strings.TrimPrefix(problemOf(t, tt.frame), "Validation failed: "); got != tt.want {
			t.Errorf("%s:\n got %q\nwant %q", tt.frame, got, tt.want)
		}
	}
}

func TestAnUnknownKeyIsIgnored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.String().Filter(func(s string) bool {
			return !strings.Contains(s, "\x00") && !slices.ContainsFunc([]string{"message", "images", "streamingBehavior", "type", "id", "sessionId", "dependsOn", "ifSessionVersion", "idempotencyKey"}, func(known string) bool {
				return strings.EqualFold(s, known)
			})
		}).Draw(t, "key")
		frame := strictjson.Encode(map[string]any{"type": "prompt", "sessionId": "s", "message": "x", key: json.RawMessage(`{"Type":[1]}`)})
		if got := problemOf(t, string(frame)); got != "" {
			t.Fatalf("%s: got %q, want it valid", frame, got)
		}
	})
}
