package coven_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dragoman-hub/dragoman/proto/coven"
)

// wire is the Coven protocol as its existing programs speak it: for each
// message its fields as "number name type", where [] is repeated, ? is
// optional and @x is a member of oneof x.
var wire = map[string]string{
	"AgentMessage": "1 register RegisterAgent@payload; 2 response MessageResponse@payload; 3 heartbeat Heartbeat@payload; " +
		"4 injection_ack InjectionAck@payload; 5 execute_pack_tool ExecutePackTool@payload",
	"RegisterAgent": "1 agent_id string; 2 name string; 3 capabilities string[]; 4 metadata AgentMetadata; 5 protocol_features string[]",
	"AgentMetadata": "1 working_directory string; 2 git GitInfo; 3 hostname string; 4 os string; 5 workspaces string[]; 6 backend string",
	"GitInfo":       "1 branch string; 2 commit string; 3 dirty bool; 4 remote string; 5 ahead int32; 6 behind int32",
	"MessageResponse": "1 request_id string; 2 thinking string@event; 3 text string@event; 4 tool_use ToolUse@event; " +
		"5 tool_result ToolResult@event; 6 done Done@event; 7 error string@event; 8 file FileData@event; " +
		"9 tool_approval_request ToolApprovalRequest@event; 10 session_init SessionInit@event; " +
		"11 session_orphaned SessionOrphaned@event; 12 usage TokenUsage@event; 13 tool_state ToolStateUpdate@event; " +
		"14 cancelled Cancelled@event",
	"ToolUse":             "1 id string; 2 name string; 3 input_json string",
	"ToolApprovalRequest": "1 id string; 2 name string; 3 input_json string",
	"ToolResult":          "1 id string; 2 output string; 3 is_error bool",
	"ToolStateUpdate":     "1 id string; 2 state ToolState; 3 detail string?",
	"TokenUsage": "1 input_tokens int32; 2 output_tokens int32; 3 cache_read_tokens int32; 4 cache_write_tokens int32; " +
		"5 thinking_tokens int32",
	"Done":            "1 full_response string",
	"FileData":        "1 filename string; 2 mime_type string; 3 data bytes",
	"FileAttachment":  "1 filename string; 2 mime_type string; 3 data bytes",
	"SessionInit":     "1 session_id string",
	"SessionOrphaned": "1 reason string",
	"Cancelled":       "1 reason string",
	"Shutdown":        "1 reason string",
	"Heartbeat":       "1 timestamp_ms int64",
	"InjectionAck":    "1 injection_id string; 2 accepted bool; 3 reason string?",
	"ExecutePackTool": "1 request_id string; 2 tool_name string; 3 input_json string",
	"ServerMessage": "1 welcome Welcome@payload; 2 send_message SendMessage@payload; 3 shutdown Shutdown@payload; " +
		"4 tool_approval ToolApprovalResponse@payload; 5 registration_error RegistrationError@payload; " +
		"6 inject_context InjectContext@payload; 7 cancel_request CancelRequest@payload; 8 pack_tool_result PackToolResult@payload",
	"Welcome": "1 server_id string; 2 agent_id string; 3 instance_id string; 4 principal_id string; " +
		"5 available_tools ToolDefinition[]; 6 mcp_token string; 7 mcp_endpoint string; 8 secrets map<string,string>",
	"SendMessage":          "1 request_id string; 2 thread_id string; 3 sender string; 4 content string; 5 attachments FileAttachment[]",
	"RegistrationError":    "1 reason string; 2 suggested_id string",
	"ToolApprovalResponse": "1 id string; 2 approved bool; 3 approve_all bool",
	"InjectContext":        "1 injection_id string; 2 content string; 3 priority InjectionPriority; 4 source string?",
	"CancelRequest":        "1 request_id string; 2 reason string?",
	"PackToolResult":       "1 request_id string; 2 output_json string@result; 3 error string@result",
	"ToolDefinition": "1 name string; 2 description string; 3 input_schema_json string; 4 required_capabilities string[]; " +
		"5 timeout_seconds int32",

	"ToolState": "0 TOOL_STATE_UNSPECIFIED; 1 TOOL_STATE_PENDING; 2 TOOL_STATE_AWAITING_APPROVAL; 3 TOOL_STATE_RUNNING; " +
		"4 TOOL_STATE_COMPLETED; 5 TOOL_STATE_FAILED; 6 TOOL_STATE_DENIED; 7 TOOL_STATE_TIMEOUT; 8 TOOL_STATE_CANCELLED",
	"InjectionPriority": "0 INJECTION_PRIORITY_UNSPECIFIED; 1 INJECTION_PRIORITY_IMMEDIATE; 2 INJECTION_PRIORITY_NORMAL; " +
		"3 INJECTION_PRIORITY_DEFERRED",
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheWireIsTheOneExistingAgentsSpeak(t *testing.T) {
	file := coven.File_coven_coven_proto
	got := make(map[string]string)
	for i := range file.Messages().Len() {
		m := file.Messages().Get(i)
		got[string(m.Name())] = fields(m)
	}
	for i := range file.Enums().Len() {
		e := file.Enums().Get(i)
		got[string(e.Name())] = values(e)
	}
	if diff := cmp.Diff(wire, got); diff != "" {
		t.Errorf("coven.proto differs from the wire (-want +got); put coven.proto right, peers cannot follow:\n%s", diff)
	}
}

func TestTheStreamIsFoundByItsWireName(t *testing.T) {
	if got, want := coven.CovenControl_AgentStream_FullMethodName, "/coven.CovenControl/AgentStream"; got != want {
		t.Errorf("method = %q, want %q", got, want)
	}
	stream := coven.CovenControl_ServiceDesc.Streams[0]
	if !stream.ClientStreams || !stream.ServerStreams {
		t.Errorf("AgentStream streams: client %t, server %t; want both", stream.ClientStreams, stream.ServerStreams)
	}
}

func fields(m protoreflect.MessageDescriptor) string {
	var all []string
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		all = append(all, fmt.Sprintf("%d %s %s", f.Number(), f.Name(), typeOf(f)))
	}
	return strings.Join(all, "; ")
}

func typeOf(f protoreflect.FieldDescriptor) string {
	switch {
	case f.IsMap():
		return fmt.Sprintf("map<%s,%s>", f.MapKey().Kind(), f.MapValue().Kind())
	case f.IsList():
		return scalar(f) + "[]"
	case f.HasOptionalKeyword():
		return scalar(f) + "?"
	case f.ContainingOneof() != nil:
		return scalar(f) + "@" + string(f.ContainingOneof().Name())
	default:
		return scalar(f)
	}
}

func scalar(f protoreflect.FieldDescriptor) string {
	switch {
	case f.Message() != nil:
		return string(f.Message().Name())
	case f.Enum() != nil:
		return string(f.Enum().Name())
	default:
		return f.Kind().String()
	}
}

func values(e protoreflect.EnumDescriptor) string {
	var all []string
	for i := range e.Values().Len() {
		v := e.Values().Get(i)
		all = append(all, fmt.Sprintf("%d %s", v.Number(), v.Name()))
	}
	return strings.Join(all, "; ")
}
