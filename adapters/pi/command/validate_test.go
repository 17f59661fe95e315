package command_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
)

// problemOf returns why a command is not admitted, or "".
func problemOf(t interface{ Fatalf(string, ...any) }, frame string) string {
	h := &host{}
	e := command.New(h, command.Options{Rates: unlimited})
	defer e.Close()
	response := submit(t, e, &command.Client{Sink: h, Attached: true}, frame)
	if h.admitted == 1 {
		return ""
	}
	var r struct{ Error string }
	if err := json.Unmarshal([]byte(response), &r); err != nil || r.Error == "" {
		t.Fatalf("%.80s: got the response %s, want an error", frame, response)
	}
	return r.Error
}

func TestInvalidCommandsAreRefusedWithTheTextsOfTheSpecification(t *testing.T) {
	long := strings.Repeat("x", 257)
	tests := []struct{ frame, want string }{
		{`{"type":"list_sessions"}`, ""},
		{`[]`, "type: Command must have a string 'type' field"},
		{`null`, "type: Command must have a string 'type' field"},
		{`{}`, "type: Command must have a string 'type' field"},
		{`{"type":5,"id":"q"}`, "type: Command must have a string 'type' field"},
		{`{"type":"nope"}`, "type: Unknown command type 'nope'"},
		{`{"type":"list_sessions","id":""}`, "id: Must be a non-empty string if provided"},
		{`{"type":"list_sessions","id":null}`, "id: Must be a non-empty string if provided"},
		{`{"type":"list_sessions","id":7}`, "id: Must be a non-empty string if provided"},
		{`{"type":"list_sessions","id":"` + long + `"}`, "id: Too long (max 256 chars)"},
		{`{"type":"list_sessions","id":"anon:1"}`, "id: Cannot use reserved prefix 'anon:'"},
		{`{"type":"list_sessions","idempotencyKey":" "}`, "idempotencyKey: Must be a non-empty string if provided"},
		{`{"type":"list_sessions","idempotencyKey":"` + long + `"}`, "idempotencyKey: Too long (max 256 chars)"},
		{`{"type":"list_sessions","dependsOn":"a"}`, "dependsOn: Must be an array of command IDs"},
		{`{"type":"list_sessions","id":"a","dependsOn":["b"," "]}`, "dependsOn[1]: Must be a non-empty command ID string"},
		{`{"type":"list_sessions","dependsOn":["b"]}`, "id: Required when dependsOn is provided"},
		{
			`{"type":"list_sessions","id":"a","dependsOn":[` + strings.Repeat(`"b",`, 32) + `"b"]}`,
			"dependsOn: Too many dependencies (max 32)",
		},
		{`{"type":"get_state","sessionId":"s","ifSessionVersion":-1}`, "ifSessionVersion: Must be a non-negative integer"},
		{`{"type":"get_state","sessionId":"s","ifSessionVersion":1.5}`, "ifSessionVersion: Must be a non-negative integer"},
		{`{"type":"get_state","sessionId":"s","ifSessionVersion":1.0}`, ""},
		{`{"type":"delete_session","sessionId":"s","ifSessionVersion":1}`, ""},
		{`{"type":"list_sessions","ifSessionVersion":1}`, "ifSessionVersion: Only supported for session-targeted commands"},
		{`{"type":"get_state"}`, "sessionId: Session commands must have a non-empty string 'sessionId'"},
		{
			`{"type":"prompt","id":"","sessionId":""}`,
			"id: Must be a non-empty string if provided; sessionId: Session commands must have a non-empty string 'sessionId'; message: Required string",
		},
		{`{"type":"create_session","sessionId":""}`, "sessionId: Must be a non-empty string if provided"},
		{`{"type":"create_session","cwd":7}`, "cwd: Must be a string if provided"},
		{`{"type":"switch_session"}`, "sessionId: Required non-empty string"},
		{`{"type":"load_session"}`, "sessionPath: Required string"},
		{`{"type":"load_session","sessionPath":"/a/../b"}`, "sessionPath: sessionPath contains potentially dangerous path components"},
		{`{"type":"load_session","sessionPath":"/` + strings.Repeat("x", 4096) + `"}`, "sessionPath: sessionPath too long (max 4096 chars)"},
		{`{"type":"prompt","sessionId":"s","message":""}`, "message: Required string"},
		{`{"type":"steer","sessionId":"s","message":"` + strings.Repeat("x", 200_001) + `"}`, "message: Too long (max 200000 chars)"},
		{`{"type":"follow_up","sessionId":"s","message":"` + strings.Repeat("😀", 100_001) + `"}`, "message: Too long (max 200000 chars)"},
		{`{"type":"follow_up","sessionId":"s","message":"` + strings.Repeat("😀", 100_000) + `"}`, ""},
		{`{"type":"prompt","sessionId":"s","message":"` + strings.Repeat(`\u0041`, 100_000) + `"}`, ""},
		{`{"type":"set_model","sessionId":"s"}`, "provider: Required string; modelId: Required string"},
		{`{"type":"set_thinking_level","sessionId":"s","level":"off"}`, "level: Must be one of: none, low, medium, high, xhigh"},
		{`{"type":"bash","sessionId":"s","command":"` + strings.Repeat("x", 20_001) + `"}`, "command: Too long (max 20000 chars)"},
		{`{"type":"compact","sessionId":"s","customInstructions":1}`, "customInstructions: Must be a string if provided"},
		{`{"type":"set_session_name","sessionId":"s","name":"a\u0007"}`, "name: Must not contain control characters"},
		{`{"type":"set_session_name","sessionId":"s","name":"` + long + `"}`, "name: Too long (max 256 chars)"},
		{`{"type":"export_html","sessionId":"s","outputPath":1}`, "outputPath: Must be a string if provided"},
		{`{"type":"set_auto_retry","sessionId":"s","enabled":"yes"}`, "enabled: Required boolean"},
		{`{"type":"cycle_model","sessionId":"s","direction":"up"}`, "direction: Must be 'forward' or 'backward'"},
		{`{"type":"fork","sessionId":"s"}`, "entryId: Required string"},
		{`{"type":"navigate_tree","sessionId":"s","options":[]}`, "targetId: Required string; options: Must be an object if provided"},
		{
			`{"type":"navigate_tree","sessionId":"s","targetId":"t","options":{"summarize":1,"label":1}}`,
			"options.summarize: Must be a boolean if provided; options.label: Must be a string if provided",
		},
		{
			`{"type":"extension_ui_response","sessionId":"s","requestId":"a.b","response":{"method":"shout"}}`,
			"requestId: Must contain only alphanumeric characters, colons, underscores, and dashes; " +
				"response.method: Must be one of: select, confirm, input, editor, interview, cancelled",
		},
		{`{"type":"extension_ui_response","sessionId":"s"}`, "requestId: Required string; response: Required object"},
		{`{"type":"get_command_history","limit":0}`, "limit: Must be between 1 and 500"},
		{`{"type":"get_command_history","limit":"1"}`, "limit: Must be an integer if provided"},
		{`{"type":"get_command_history","fromTimestamp":2,"toTimestamp":1}`, "fromTimestamp: Must be less than or equal to toTimestamp"},
		{`{"type":"get_command_history","toTimestamp":-1}`, "toTimestamp: Must be a non-negative integer timestamp"},
		{`{"type":"get_command_history","commandId":"` + long + `","sessionIdFilter":""}`,
			"sessionIdFilter: Must be a non-empty string if provided; commandId: Too long (max 256 chars)"},
	}
	for _, tt := range tests {
		want := tt.want
		if want != "" {
			want = "Validation failed: " + want
		}
		if got := problemOf(t, tt.frame); got != want {
			t.Errorf("%.80s:\n got %q\nwant %q", tt.frame, got, want)
		}
	}
}

func TestFramesThatAreNotStrictJSONAreRefusedWithWhatToChange(t *testing.T) {
	for _, frame := range []string{
		"", "{", `{"type":"a"} {"type":"b"}`, `{"type":"a","type":"b"}`, "\ufeff{}", `{"a":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + "}",
		"\x00\x01", `{"a\u0000":1}`, "{\"type\":\"\xff\"}",
	} {
		if _, err := command.Decode([]byte(frame), 1<<20); err == nil {
			t.Errorf("decode(%.40q): got no error, want one", frame)
		}
	}
}

// The samples in testdata are copied from the specification.
func TestEverySampleOfTheSpecificationIsValid(t *testing.T) {
	text, err := os.ReadFile("testdata/samples.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasPrefix(line, "> ") {
			if problem := problemOf(t, line[2:]); problem != "" {
				t.Errorf("command %s: got %q, want it valid", line, problem)
			}
			continue
		}
		var f struct{ Type string }
		if err := json.Unmarshal([]byte(line), &f); err != nil || f.Type == "" {
			t.Errorf("frame %s: got %v and type %q, want it read", line, err, f.Type)
		}
	}
}

func TestEveryCommandOfTheSpecificationIsKnown(t *testing.T) {
	text, err := os.ReadFile("testdata/commands.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, name := range strings.Fields(string(text)) {
		want[name] = true
	}
	got := map[string]bool{}
	for name := range command.Table {
		got[name] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("commands differ (-want +got):\n%s", diff)
	}
}
