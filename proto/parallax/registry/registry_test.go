package registry_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dragoman-hub/dragoman/proto/parallax/confidence"
	"github.com/dragoman-hub/dragoman/proto/parallax/gateway"
	"github.com/dragoman-hub/dragoman/proto/parallax/registry"
)

// The gateway, the registry and the service of an agent as existing agents speak them: for each
// message its fields as "number name type", where [] is repeated and {} a map.
var (
	ofGateway = map[string]string{
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
	ofRegistry = map[string]string{
		"AgentRegistration":  "1 id string; 2 name string; 3 endpoint string; 4 capabilities string[]; 5 metadata Metadata; 6 registered_at Timestamp; 7 ttl Duration",
		"Metadata":           "1 version string; 2 region string; 3 labels {}; 4 default_confidence double",
		"RegisterRequest":    "1 agent AgentRegistration; 2 auto_renew bool",
		"RegisterResponse":   "1 success bool; 2 message string; 3 lease_id string",
		"RenewRequest":       "1 lease_id string; 2 ttl Duration",
		"GetAgentRequest":    "1 agent_id string",
		"ListAgentsRequest":  "1 capabilities string[]; 2 labels {}; 3 limit int32; 4 continuation_token string",
		"ListAgentsResponse": "1 agents AgentRegistration[]; 2 next_continuation_token string; 3 total_count int32",
		"WatchRequest":       "1 capabilities string[]; 2 include_initial bool",
		"WatchEvent":         "1 type enum; 2 agent AgentRegistration; 3 timestamp Timestamp",
	}
	ofAgents = map[string]string{
		"AgentRequest":     "1 task_id string; 2 task_description string; 3 data Struct; 4 context {}; 5 timeout_ms int32; 6 pattern_name string",
		"ConfidenceResult": "1 value_json string; 2 confidence double; 3 agent_id string; 4 timestamp Timestamp; 5 uncertainties string[]; 6 reasoning string; 7 metadata {}",
		"Capabilities":     "1 agent_id string; 2 name string; 3 capabilities string[]; 4 expertise_level double; 5 capability_scores {}",
		"Health":           "1 status enum; 2 message string; 3 last_check Timestamp; 4 details {}",
	}
)

func TestTheWireIsTheOnePublishedAgentsSpeak(t *testing.T) {
	for _, c := range []struct {
		file protoreflect.FileDescriptor
		want map[string]string
	}{{gateway.File_parallax_gateway_gateway_proto, ofGateway}, {registry.File_parallax_registry_registry_proto, ofRegistry}, {confidence.File_parallax_confidence_confidence_proto, ofAgents}} {
		got := map[string]string{}
		describe(c.file.Messages(), got)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s differs from the wire (-want +got); put it right, peers cannot follow:\n%s", c.file.Path(), diff)
		}
	}
	for got, want := range map[string]string{
		gateway.AgentGateway_Connect_FullMethodName:       "/parallax.gateway.AgentGateway/Connect",
		registry.Registry_Register_FullMethodName:         "/parallax.registry.Registry/Register",
		confidence.ConfidenceAgent_Analyze_FullMethodName: "/parallax.confidence.ConfidenceAgent/Analyze",
	} {
		if got != want {
			t.Errorf("got the method %s, want %s", got, want)
		}
	}
}

func describe(messages protoreflect.MessageDescriptors, into map[string]string) {
	for i := range messages.Len() {
		m := messages.Get(i)
		if m.IsMapEntry() {
			continue
		}
		var fields []string
		for j := range m.Fields().Len() {
			f := m.Fields().Get(j)
			fields = append(fields, fmt.Sprintf("%d %s %s", f.Number(), f.Name(), typeOf(f)))
		}
		into[string(m.Name())] = strings.Join(fields, "; ")
		describe(m.Messages(), into)
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
