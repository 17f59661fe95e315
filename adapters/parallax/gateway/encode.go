package gateway

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	pb "github.com/dragoman-hub/dragoman/proto/parallax/gateway"
)

// TypePing is the type of a frame for the ping of the gateway, which has no other frame:
// a WebSocket has its own ping.
const TypePing = "ping"

// Encode returns a frame of the hub as a message, nil if the gateway has none for it, and
// the type of the frame. An error becomes an ack that refuses the agent, which only the
// stream knows whether to send. The error is a Fault if the gateway cannot carry the task.
func Encode(frame []byte) (m *pb.ControlPlaneToAgent, kind string, err error) {
	var f wire.Message
	if err := json.Unmarshal(frame, &f); err != nil {
		return nil, "", err
	}
	switch f.Type {
	case wire.TypeRegistered:
		m = ackOf(f.ID, true, "Connected")
	case wire.TypeError:
		var r wire.Refusal
		err = json.Unmarshal(f.Payload, &r)
		m = ackOf(f.ID, false, r.Message)
	case wire.TypeTask:
		m, err = taskRequestOf(f.Payload)
	case wire.TypeTaskCancelled:
		var c wire.TaskCancelled
		err = json.Unmarshal(f.Payload, &c)
		m = &pb.ControlPlaneToAgent{
			RequestId: c.ExecutionID,
			Payload:   &pb.ControlPlaneToAgent_CancelTask{CancelTask: &pb.CancelTask{TaskId: c.TaskID, Reason: c.Reason}},
		}
	case TypePing:
		m = &pb.ControlPlaneToAgent{Payload: &pb.ControlPlaneToAgent_Ping{Ping: &pb.Ping{ServerTime: timestamppb.Now()}}}
	}
	return m, f.Type, err
}

func ackOf(id string, accepted bool, text string) *pb.ControlPlaneToAgent {
	return &pb.ControlPlaneToAgent{RequestId: id, Payload: &pb.ControlPlaneToAgent_Ack{Ack: &pb.ServerAck{Accepted: accepted, Message: text}}}
}

// taskRequestOf returns a task. Agents of the gateway take the description as the
// instruction and the data as its subject; the content of the request is in both. What
// has no field of its own is a string in the context.
func taskRequestOf(payload json.RawMessage) (*pb.ControlPlaneToAgent, error) {
	var t wire.Task
	var input, others, context wire.Members
	for _, into := range []any{&t, &others} {
		if err := json.Unmarshal(payload, into); err != nil {
			return nil, err
		}
	}
	if err := json.Unmarshal(t.Input, &input); err != nil {
		return nil, err
	}
	_ = json.Unmarshal(others["context"], &context) // empty if there is none
	data, err := structOf(t.Input)
	if err != nil {
		return nil, err
	}
	r := &pb.TaskRequest{
		TaskId: t.TaskID, TaskDescription: t.Capability, Data: data, Context: map[string]string{},
		TimeoutMs: int32(min(t.Timeout, math.MaxInt32)), PatternName: t.PatternName,
	}
	if text, _ := wire.Unquoted(input["content"]); text != "" {
		r.TaskDescription = text
	}
	for _, name := range []string{"taskId", "input", "timeout", "patternName", "context"} {
		delete(others, name)
	}
	for _, members := range []wire.Members{others, context} {
		for name, value := range members {
			text, isText := wire.Unquoted(value)
			if !isText {
				text = string(value)
			}
			r.Context[name] = text
		}
	}
	return &pb.ControlPlaneToAgent{RequestId: t.ExecutionID, Payload: &pb.ControlPlaneToAgent_TaskRequest{TaskRequest: r}}, nil
}

// structOf returns a JSON object as a Struct, where every number is a double. A number
// that a double does not hold exactly becomes a string of its digits. The error is a Fault.
func structOf(object json.RawMessage) (*structpb.Struct, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		return nil, core.AsFault(err)
	}
	toDoubles(v)
	s, err := structpb.NewStruct(v)
	if err != nil {
		return nil, core.NewFault(core.CodeUnsupported, "the request cannot be sent to an agent of the Parallax gateway: %s", err.Error())
	}
	return s, nil
}

// toDoubles returns v with its numbers replaced, also within v.
func toDoubles(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		whole, integer := v.Int64()
		if err != nil || integer == nil && int64(f) != whole || integer != nil && !strings.ContainsAny(v.String(), ".eE") {
			return v.String()
		}
		return f
	case []any:
		for i := range v {
			v[i] = toDoubles(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = toDoubles(v[name])
		}
	}
	return v
}
