package schemas_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/schemas"
)

func TestEveryTypeOfMessageHasASchemaAndASample(t *testing.T) {
	seen := map[*schemas.Schema]bool{}
	for _, s := range schemas.Samples(t) {
		seen[s.Schema] = true
	}
	want := map[string][]string{
		"parallax": {
			"register", "registered", "heartbeat", "heartbeat_ack", "task", "task_result", "task_error", "task_cancelled", "status_update",
			"config_update", "disconnect", "error", "task_accepted", "task_progress", "task_request", "task_cancel",
		},
		"acp": {
			"ping", "pong", "query", "response", "delegate", "ack", "result", "notify", "cancel", "discover", "capabilities", "error",
			"hello", "progress", "subscribe", "unsubscribe",
		},
		"native": {
			"call", "event", "answer", "progress", "ask", "withdrawn", "load", "vitals", "tools", "hello", "result", "error", "gap", "execute", "question", "settings", "draining",
		},
		"a2a": {
			"SendMessage", "SendStreamingMessage", "GetTask", "ListTasks", "CancelTask", "SubscribeToTask", "CreateTaskPushNotificationConfig",
			"GetTaskPushNotificationConfig", "ListTaskPushNotificationConfigs", "DeleteTaskPushNotificationConfig", "GetExtendedAgentCard",
		},
		"pi-rpc": {
			"abort", "abort_bash", "abort_retry", "agent_end", "agent_settled", "agent_start", "auto_retry_end", "auto_retry_start", "bash",
			"bash_execution_update", "clear_queue", "clone", "compact", "compaction_end", "compaction_start", "cycle_model", "cycle_thinking_level",
			"entry_appended", "export_html", "extension_error", "extension_ui_request", "extension_ui_response", "follow_up", "fork", "get_available_models",
			"get_available_thinking_levels", "get_commands", "get_entries", "get_fork_messages", "get_last_assistant_text", "get_messages",
			"get_session_stats", "get_state", "get_tree", "message_end", "message_start", "message_update", "new_session", "prompt", "queue_update",
			"response", "session_info_changed", "set_auto_compaction", "set_auto_retry", "set_follow_up_mode", "set_model", "set_session_name",
			"set_steering_mode", "set_thinking_level", "steer", "summarization_retry_attempt_start", "summarization_retry_finished",
			"summarization_retry_scheduled", "switch_session", "thinking_level_changed", "tool_execution_end", "tool_execution_start",
			"tool_execution_update", "turn_end", "turn_start",
		},
	}
	for dialect, schema := range map[string]func(string) *schemas.Schema{
		"parallax": schemas.Parallax, "acp": schemas.ACP, "native": schemas.Native, "a2a": schemas.A2A, "pi-rpc": schemas.PiRPC,
	} {
		if got := typesIn(t, dialect); len(got) != len(want[dialect]) {
			t.Errorf("%s: got %d schemas, want %d", dialect, len(got), len(want[dialect]))
		}
		for _, name := range want[dialect] {
			if s := schema(name); s == nil || !seen[s] {
				t.Errorf("%s: want a schema and a sample of %s", dialect, name)
			}
		}
	}
}

// typesIn returns the types of messages of a dialect that have a schema.
func typesIn(t *testing.T, dialect string) (types []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dialect, "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("got no schemas of %s and %v, want some", dialect, err)
	}
	for _, p := range paths {
		types = append(types, strings.TrimSuffix(filepath.Base(p), ".json"))
	}
	return types
}

func TestNobodyKnowsATypeThatHasNoSchema(t *testing.T) {
	for _, name := range []string{"", "foo", "Task", "common", "common/envelope", "envelope", "parts", "../acp/query", "task.json"} {
		for _, schema := range []func(string) *schemas.Schema{
			schemas.Parallax, schemas.ACP, schemas.Native, schemas.Editor, schemas.EditorResult, schemas.A2A, schemas.A2AResult, schemas.PiRPC, schemas.PiRPCResult,
		} {
			if schema(name) != nil {
				t.Errorf("got a schema for %q, want none", name)
			}
		}
	}
}

func TestTheSchemaOfTheEditorsProtocolHasItsMethods(t *testing.T) {
	notifications := []string{"session/update", "session/cancel", "elicitation/complete", "$/cancel_request"}
	requests := []string{
		"initialize", "authenticate", "logout", "session/new", "session/load", "session/resume", "session/list", "session/delete", "session/close",
		"session/prompt", "session/set_mode", "session/set_config_option", "session/request_permission",
		"fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release",
		"elicitation/create",
	}
	for _, method := range append(notifications, requests...) {
		if schemas.Editor(method) == nil {
			t.Errorf("%s: got no schema of its params, want one", method)
		}
		if got, want := schemas.EditorResult(method) != nil, !slices.Contains(notifications, method); got != want {
			t.Errorf("%s: got a schema of its result %v, want %v", method, got, want)
		}
	}
	for text, want := range map[string]string{
		`{"sessionId":"s","prompt":[{"type":"text","text":"x"}]}`: "",
		`{"sessionId":"s","prompt":[{"type":"text"}]}`:            "text",
	} {
		if err := schemas.Editor("session/prompt").Validate([]byte(text)); (err == nil) != (want == "") {
			t.Errorf("%s: got %v, want an error of %q", text, err, want)
		}
	}
}
