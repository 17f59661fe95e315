package schemas_test

import (
	"path/filepath"
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
		"editor": {
			"initialize", "authenticate", "logout", "session/new", "session/load", "session/resume", "session/list", "session/delete", "session/close",
			"session/prompt", "session/cancel", "session/set_mode", "session/set_config_option", "session/update", "session/request_permission",
			"fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release",
			"elicitation/create", "elicitation/complete", "$/cancel_request",
		},
		"a2a": {
			"SendMessage", "SendStreamingMessage", "GetTask", "ListTasks", "CancelTask", "SubscribeToTask", "CreateTaskPushNotificationConfig",
			"GetTaskPushNotificationConfig", "ListTaskPushNotificationConfigs", "DeleteTaskPushNotificationConfig", "GetExtendedAgentCard",
		},
	}
	for dialect, schema := range map[string]func(string) *schemas.Schema{"parallax": schemas.Parallax, "acp": schemas.ACP, "native": schemas.Native, "editor": schemas.Editor, "a2a": schemas.A2A} {
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
		if schemas.Parallax(name) != nil || schemas.ACP(name) != nil || schemas.Native(name) != nil || schemas.Editor(name) != nil || schemas.EditorResult(name) != nil {
			t.Errorf("got a schema for %q, want none", name)
		}
	}
}
