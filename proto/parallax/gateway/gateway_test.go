package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dragoman-hub/dragoman/proto/parallax/gateway"
)

// wire is the gateway as its existing agents speak it: for each message its fields as
// "number name type", where [] is repeated and {} a map of texts.
var wire = map[string]string{
	"AgentToControlPlane": "1 request_id string; 2 hello AgentHello; 3 heartbeat AgentHeartbeat; 4 task_result TaskResult; 5 task_error TaskError; " +
		"6 thread_spawn_result ThreadSpawnResult; 7 thread_event ThreadEventReport; 8 thread_status_update ThreadStatusUpdate",
	"AgentHello":         "1 agent_id string; 2 agent_name string; 3 capabilities string[]; 4 metadata {}; 5 heartbeat_interval_ms int32",
	"AgentHeartbeat":     "1 agent_id string; 2 load double; 3 status string; 4 extra {}",
	"TaskResult":         "1 task_id string; 2 value_json string; 3 confidence double; 4 reasoning string; 5 metadata {}",
	"TaskError":          "1 task_id string; 2 error_message string; 3 error_code string",
	"ThreadSpawnResult":  "1 thread_id string; 2 success bool; 3 error_message string; 4 adapter_type string; 5 workspace_dir string",
	"ThreadEventReport":  "1 thread_id string; 2 event_type string; 3 data_json string; 4 timestamp_ms int64; 5 sequence int32",
	"ThreadStatusUpdate": "1 thread_id string; 2 status string; 3 summary string; 4 progress double; 5 timestamp_ms int64",
	"ControlPlaneToAgent": "1 request_id string; 2 ack ServerAck; 3 task_request TaskRequest; 4 cancel_task CancelTask; 5 ping Ping; " +
		"6 thread_spawn ThreadSpawn; 7 thread_input ThreadInput; 8 thread_stop ThreadStop",
	"ServerAck":   "1 accepted bool; 2 message string; 3 assigned_node_id string",
	"TaskRequest": "1 task_id string; 2 task_description string; 3 data Struct; 4 context {}; 5 timeout_ms int32; 6 pattern_name string",
	"CancelTask":  "1 task_id string; 2 reason string",
	"Ping":        "1 server_time Timestamp",
	"ThreadSpawn": "1 thread_id string; 2 adapter_type string; 3 task string; 4 preparation_json string; 5 policy_json string; 6 timeout_ms int32",
	"ThreadInput": "1 thread_id string; 2 input string; 3 input_type string",
	"ThreadStop":  "1 thread_id string; 2 reason string; 3 force bool",
}

func TestTheWireIsTheOnePublishedAgentsSpeak(t *testing.T) {
	messages := gateway.File_parallax_gateway_gateway_proto.Messages()
	got := make(map[string]string)
	for i := range messages.Len() {
		m := messages.Get(i)
		var fields []string
		for j := range m.Fields().Len() {
			f := m.Fields().Get(j)
			fields = append(fields, fmt.Sprintf("%d %s %s", f.Number(), f.Name(), typeOf(f)))
		}
		got[string(m.Name())] = strings.Join(fields, "; ")
	}
	if diff := cmp.Diff(wire, got); diff != "" {
		t.Errorf("gateway.proto differs from the wire (-want +got); put gateway.proto right, peers cannot follow:\n%s", diff)
	}
	if got, want := gateway.AgentGateway_Connect_FullMethodName, "/parallax.gateway.AgentGateway/Connect"; got != want {
		t.Errorf("got the method %s, want %s", got, want)
	}
}

func typeOf(f protoreflect.FieldDescriptor) string {
	name := f.Kind().String()
	if f.Message() != nil {
		name = string(f.Message().Name())
	}
	switch {
	case f.IsMap():
		return "{}"
	case f.IsList():
		return name + "[]"
	}
	return name
}
