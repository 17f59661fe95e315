package parallax

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	pb "github.com/dragoman-hub/dragoman/proto/parallax/gateway"
)

// toGateway is what the hub says to an agent of a WebSocket, as one of the gateway is
// told it; nil for what the gateway has no message for. kind is the type of the frame.
// An error of the hub is the ack of a refusal, which is for the stream to judge. The
// error is a Fault: the task cannot be said in this form.
func toGateway(frame []byte) (m *pb.ControlPlaneToAgent, kind string, err error) {
	var f wire.Message
	if err := json.Unmarshal(frame, &f); err != nil {
		return nil, "", core.AsFault(err)
	}
	switch f.Type {
	case wire.TypeRegistered:
		return ackOf(f.ID, true, "Connected"), f.Type, nil
	case wire.TypeError:
		var r wire.Refusal
		err = json.Unmarshal(f.Payload, &r)
		return ackOf(f.ID, false, r.Message), f.Type, err
	case wire.TypeTask:
		m, err = taskRequestOf(f.Payload)
		return m, f.Type, err
	case wire.TypeTaskCancelled:
		var c wire.TaskCancelled
		err = json.Unmarshal(f.Payload, &c)
		return &pb.ControlPlaneToAgent{
			RequestId: c.ExecutionID,
			Payload:   &pb.ControlPlaneToAgent_CancelTask{CancelTask: &pb.CancelTask{TaskId: c.TaskID, Reason: c.Reason}},
		}, f.Type, err
	case typePing:
		return pingOf(time.Now()), f.Type, nil
	}
	return nil, f.Type, nil
}

func ackOf(id string, accepted bool, text string) *pb.ControlPlaneToAgent {
	return &pb.ControlPlaneToAgent{RequestId: id, Payload: &pb.ControlPlaneToAgent_Ack{Ack: &pb.ServerAck{Accepted: accepted, Message: text}}}
}

// taskRequestOf is a task. Agents of the gateway read what to do as the description
// in words, and what to do it with as the data: the text that was asked, where there
// is one, is both. What has no field of its own stands in the context, as text.
func taskRequestOf(payload json.RawMessage) (*pb.ControlPlaneToAgent, error) {
	var t wire.Task
	var input, around wire.Members
	var all struct {
		Context wire.Members `json:"context"`
	}
	for _, into := range []any{&t, &all, &around} {
		if err := json.Unmarshal(payload, into); err != nil {
			return nil, core.AsFault(err)
		}
	}
	if err := json.Unmarshal(t.Input, &input); err != nil {
		return nil, core.AsFault(err)
	}
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
		delete(around, name)
	}
	for _, from := range []wire.Members{around, all.Context} {
		for name, value := range from {
			text, isText := wire.Unquoted(value)
			if !isText {
				text = string(value)
			}
			r.Context[name] = text
		}
	}
	return &pb.ControlPlaneToAgent{RequestId: t.ExecutionID, Payload: &pb.ControlPlaneToAgent_TaskRequest{TaskRequest: r}}, nil
}

// structOf is an object of JSON in the form of protobuf, where every number is a
// double. A number that a double does not hold exactly would become another one: it
// is told as its digits. The error is a Fault.
func structOf(object json.RawMessage) (*structpb.Struct, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		return nil, core.AsFault(err)
	}
	for name := range v {
		v[name] = doubles(v[name])
	}
	s, err := structpb.NewStruct(v)
	if err != nil {
		return nil, core.NewFault(core.CodeUnsupported, "the request cannot be said to an agent of the Parallax gateway: %s", err.Error())
	}
	return s, nil
}

// doubles replaces the numbers within v.
func doubles(v any) any {
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
			v[i] = doubles(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = doubles(v[name])
		}
	}
	return v
}
