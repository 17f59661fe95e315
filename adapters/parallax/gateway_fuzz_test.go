package parallax_test

import (
	"encoding/json"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/adapters/parallax/gateway"
	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	pb "github.com/dragoman-hub/dragoman/proto/parallax/gateway"
)

// FuzzDecode checks that no message of an agent makes the codec panic, and that a result or
// an error, however invalid, ends its task.
func FuzzDecode(f *testing.F) {
	for _, m := range []*pb.AgentToControlPlane{
		{RequestId: "hello-a", Payload: &pb.AgentToControlPlane_Hello{Hello: &pb.AgentHello{
			AgentId: "a", AgentName: "A", Capabilities: []string{"analysis"}, Metadata: map[string]string{"maxConcurrentTasks": "3"}, HeartbeatIntervalMs: 5000,
		}}},
		{Payload: &pb.AgentToControlPlane_Heartbeat{Heartbeat: &pb.AgentHeartbeat{Load: 0.5, Status: "healthy", Extra: map[string]string{"cpu": "0.1", "host": "h"}}}},
		{RequestId: "t.1", Payload: &pb.AgentToControlPlane_TaskResult{TaskResult: &pb.TaskResult{
			TaskId: "t", ValueJson: `{"answer":[1,{"a":null}]}`, Confidence: 0.9, Reasoning: "because", Metadata: map[string]string{"tokensUsed": "7", "truncated": "yes", "progress": "no"},
		}}},
		{RequestId: "t.1", Payload: &pb.AgentToControlPlane_TaskResult{TaskResult: &pb.TaskResult{TaskId: "t", ValueJson: `{"a":1,"a":2}`}}},
		{RequestId: "t.1", Payload: &pb.AgentToControlPlane_TaskError{TaskError: &pb.TaskError{TaskId: "t", ErrorMessage: "no", ErrorCode: "INTERNAL"}}},
		{Payload: &pb.AgentToControlPlane_ThreadEvent{ThreadEvent: &pb.ThreadEventReport{ThreadId: "x"}}},
		{},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m pb.AgentToControlPlane
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		frame, ignored := gateway.Decode(&m)
		if frame == nil {
			if ignored == "" {
				t.Fatalf("%v: left out, got no name to count", &m)
			}
			return
		}
		task := m.GetTaskResult().GetTaskId() + m.GetTaskError().GetTaskId()
		if task == "" || len(task) > 36 || len(m.GetRequestId()) > 40 {
			return // no task of the hub
		}
		got, err := wire.Decode(frame)
		if err != nil {
			t.Fatalf("%v: got %s: %v", &m, frame, err)
		}
		if got.Type == wire.TypeTaskError {
			_, err = wire.ReadPayload[wire.TaskError](got)
		} else {
			_, err = wire.ReadPayload[wire.TaskResult](got)
		}
		if err != nil {
			t.Fatalf("%v: got %s: %v", &m, frame, err)
		}
	})
}

// FuzzEncode checks that each request is encoded unchanged for an agent of the gateway or
// refused.
func FuzzEncode(f *testing.F) {
	f.Add(`{"city":"Cairo","n":[1,2.5,-0,1e3],"deep":{"a":null,"b":true}}`, "hello")
	f.Add(`{"big":9007199254740993,"huge":1e999,"long":123456789012345678901234567890}`, "")
	f.Add(`[1,2]`, "\x00")
	f.Fuzz(func(t *testing.T, data, content string) {
		if !utf8.ValidString(content) || strictjson.Check([]byte(data), gateway.Limits) != nil {
			return
		}
		p, err := wire.TaskOf(core.Request{Content: content, Data: json.RawMessage(data)})
		if err != nil {
			return
		}
		p.TaskRef = wire.TaskRef{TaskID: "t", ExecutionID: "t.1"}
		frame, err := wire.Encode(wire.TypeTask, "m", time.Unix(0, 0), p)
		if err != nil {
			t.Fatal(err)
		}
		m, _, err := gateway.Encode(frame)
		if err != nil {
			if f := core.AsFault(err); f.Code == core.CodeInternal {
				t.Fatalf("%s: got %v, want it encoded or refused with a reason", frame, err)
			}
			return
		}
		if r := m.GetTaskRequest(); r.GetTaskId() != "t" || m.GetRequestId() != "t.1" || r.GetData() == nil {
			t.Fatalf("%s: got %v, want its task, request and data", frame, m)
		}
		if got := m.GetTaskRequest().GetData().GetFields()["content"].GetStringValue(); got != content && json.Valid([]byte(data)) && !hidesContent(data) {
			t.Fatalf("%s: got %q, want the content", frame, got)
		}
	})
}

// hidesContent reports whether the data has a member named content.
func hidesContent(data string) bool {
	var ms wire.Members
	return json.Unmarshal([]byte(data), &ms) == nil && ms["content"] != nil
}
