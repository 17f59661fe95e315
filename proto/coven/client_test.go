package coven_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/proto/coven"
)

// clientWire is the client side of the Coven protocol, in the notation of wire. Numbers
// from 1000 are additions of this hub.
var clientWire = map[string]string{
	"ClientSendMessageRequest":  "1 conversation_key string; 2 content string; 3 attachments FileAttachment[]; 4 idempotency_key string",
	"ClientSendMessageResponse": "1 status string; 2 message_id string",
	"StreamEventsRequest":       "1 conversation_key string; 2 since_event_id string?",
	"ClientStreamEvent": "1 conversation_key string; 2 timestamp string; 3 text TextChunk@payload; 4 thinking ThinkingChunk@payload; " +
		"5 tool_use ToolUse@payload; 6 tool_result ToolResult@payload; 7 tool_state ToolStateUpdate@payload; 8 usage TokenUsage@payload; " +
		"9 done StreamDone@payload; 10 error StreamError@payload; 11 event Event@payload; " +
		"12 tool_approval ClientToolApprovalRequest@payload; 13 user_question UserQuestionRequest@payload; 1000 event_id string",
	"TextChunk":                 "1 content string",
	"ThinkingChunk":             "1 content string",
	"StreamDone":                "1 full_response string?",
	"StreamError":               "1 message string; 2 recoverable bool",
	"ClientToolApprovalRequest": "1 agent_id string; 2 request_id string; 3 tool_id string; 4 tool_name string; 5 input_json string",
	"Event": "1 id string; 2 conversation_key string; 3 direction string; 4 author string; 5 timestamp string; 6 type string; " +
		"7 text string?; 8 raw_transport string?; 9 raw_payload_ref string?; 10 actor_principal_id string?; 11 actor_member_id string?",
	"GetEventsRequest":       "1 conversation_key string; 2 since string?; 3 until string?; 4 limit int32?; 5 cursor string?",
	"GetEventsResponse":      "1 events Event[]; 2 next_cursor string?; 3 has_more bool",
	"MeResponse":             "1 principal_id string; 2 principal_type string; 3 display_name string; 4 status string; 5 roles string[]; 6 member_id string?; 7 member_display_name string?",
	"ListAgentsRequest":      "1 workspace string?",
	"ListAgentsResponse":     "1 agents AgentInfo[]",
	"AgentInfo":              "1 id string; 2 name string; 3 backend string; 4 working_dir string; 5 connected bool; 6 metadata AgentMetadata?",
	"RegisterAgentRequest":   "1 display_name string; 2 fingerprint string",
	"RegisterAgentResponse":  "1 principal_id string; 2 status string",
	"RegisterClientRequest":  "1 display_name string; 2 fingerprint string",
	"RegisterClientResponse": "1 principal_id string; 2 status string",
	"ApproveToolRequest":     "1 agent_id string; 2 tool_id string; 3 approved bool; 4 approve_all bool",
	"ApproveToolResponse":    "1 success bool; 2 error string?",
	"AnswerQuestionRequest":  "1 agent_id string; 2 question_id string; 3 selected string[]; 4 custom_text string?",
	"AnswerQuestionResponse": "1 success bool; 2 error string?",
	"UserQuestionRequest": "1 agent_id string; 2 question_id string; 3 question string; 4 options QuestionOption[]; 5 multi_select bool; " +
		"6 header string?; 7 timeout_seconds int32",
	"QuestionOption": "1 label string; 2 description string?",
}

func TestTheWireIsTheOneExistingClientsSpeak(t *testing.T) {
	file := coven.File_coven_client_proto
	got := make(map[string]string)
	for i := range file.Messages().Len() {
		m := file.Messages().Get(i)
		got[string(m.Name())] = fields(m)
	}
	if diff := cmp.Diff(clientWire, got); diff != "" {
		t.Errorf("client.proto differs from the wire (-want +got); put client.proto right, peers cannot follow:\n%s", diff)
	}
	var methods []string
	service := file.Services().Get(0)
	for i := range service.Methods().Len() {
		m := service.Methods().Get(i)
		methods = append(methods, string(m.FullName()))
		if m.IsStreamingClient() || m.IsStreamingServer() != (m.Name() == "StreamEvents") {
			t.Errorf("%s streams: client %t, server %t; want the answer of StreamEvents alone to", m.Name(), m.IsStreamingClient(), m.IsStreamingServer())
		}
	}
	want := []string{
		"coven.ClientService.GetEvents", "coven.ClientService.GetMe", "coven.ClientService.SendMessage", "coven.ClientService.StreamEvents",
		"coven.ClientService.ListAgents", "coven.ClientService.RegisterAgent", "coven.ClientService.RegisterClient",
		"coven.ClientService.ApproveTool", "coven.ClientService.AnswerQuestion",
	}
	if diff := cmp.Diff(want, methods); diff != "" {
		t.Errorf("the methods differ from the wire (-want +got):\n%s", diff)
	}
}
