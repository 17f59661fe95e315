package gateway

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	pb "github.com/dragoman-hub/dragoman/proto/parallax/gateway"
)

// Limits bound the JSON in a message, which Decode nests two objects deeper.
var Limits = strictjson.Limits{Depth: wire.Limits.Depth - 2}

// Decode returns a message of an agent as a frame, nil if the hub has no use for it.
// ignored names what was left out, "" for nothing.
func Decode(m *pb.AgentToControlPlane) (frame []byte, ignored string) {
	id := m.GetRequestId()
	switch p := m.GetPayload().(type) {
	case *pb.AgentToControlPlane_Hello:
		return encode(wire.TypeRegister, id, registerOf(p.Hello)), ""
	case *pb.AgentToControlPlane_Heartbeat:
		return encode(wire.TypeHeartbeat, id, heartbeatOf(p.Heartbeat)), ""
	case *pb.AgentToControlPlane_TaskResult:
		return resultFrame(id, p.TaskResult)
	case *pb.AgentToControlPlane_TaskError:
		e := wire.ErrorDetail{Code: cmp.Or(wire.Shorten(p.TaskError.GetErrorCode()), wire.CodeProcessing), Message: p.TaskError.GetErrorMessage()}
		return encode(wire.TypeTaskError, id, wire.TaskError{TaskRef: refOf(id, p.TaskError.GetTaskId()), Error: e}), ""
	case *pb.AgentToControlPlane_ThreadSpawnResult, *pb.AgentToControlPlane_ThreadEvent, *pb.AgentToControlPlane_ThreadStatusUpdate:
		return nil, "thread" // the hub starts no threads
	}
	return nil, "unknown_message"
}

// encode returns the frame of a payload made here, which always encodes.
func encode(kind, id string, payload any) []byte {
	if len(id) > core.MaxIDBytes {
		id = "" // no answer needs it
	}
	frame, _ := wire.Encode(kind, id, time.Now(), payload)
	return frame
}

// registerOf returns a hello as a register. The settings that have no field in a hello
// are strings in its metadata.
func registerOf(h *pb.AgentHello) wire.Register {
	r := wire.Register{AgentID: h.GetAgentId(), Capabilities: h.GetCapabilities(), Metadata: quoted(h.GetMetadata())}
	if r.Capabilities == nil {
		r.Capabilities = []string{}
	}
	if h.GetAgentName() != "" {
		r.Metadata["name"] = strictjson.Encode(h.GetAgentName())
	}
	r.Config.HeartbeatInterval = wire.Count(h.GetHeartbeatIntervalMs())
	if r.Config.HeartbeatInterval <= 0 {
		r.Config.HeartbeatInterval = wire.MillisecondsOf(wire.DefaultHeartbeatInterval)
	}
	if n, err := strconv.ParseInt(h.GetMetadata()["maxConcurrentTasks"], 10, 32); err == nil {
		r.Config.MaxConcurrentTasks = wire.Count(n)
	}
	if slices.Contains(strings.Fields(h.GetMetadata()["extensions"]), wire.ExtensionTrace) {
		r.Config.Extensions = []string{wire.ExtensionTrace} // there are no messages for the others
	}
	return r
}

func heartbeatOf(h *pb.AgentHeartbeat) wire.Heartbeat {
	b := wire.Heartbeat{Status: h.GetStatus(), Metrics: quoted(h.GetExtra())}
	for name, text := range h.GetExtra() {
		if f, err := strconv.ParseFloat(text, 64); err == nil && finite(f) {
			b.Metrics[name] = number(f)
		}
	}
	if load := h.GetLoad(); finite(load) {
		b.Metrics["load"] = number(load)
	}
	return b
}

// resultFrame returns a result as a task_result. A value that is no JSON must not pass as
// an answer: it becomes a task_error.
func resultFrame(id string, r *pb.TaskResult) (frame []byte, ignored string) {
	ref := refOf(id, r.GetTaskId())
	value := json.RawMessage("null")
	if text := strings.TrimSpace(r.GetValueJson()); text != "" {
		value = json.RawMessage(text)
		if err := strictjson.Check(value, Limits); err != nil {
			e := wire.ErrorDetail{Code: wire.CodeProcessing, Message: "the agent's result is no JSON that can be passed on: value_json: " + wire.Explain(err)}
			return encode(wire.TypeTaskError, id, wire.TaskError{TaskRef: ref, Error: e}), ""
		}
	}
	metadata := quoted(r.GetMetadata())
	ignored = convertMetadata(metadata)
	if c := r.GetConfidence(); finite(c) {
		metadata["confidence"] = number(c)
	}
	if text := r.GetReasoning(); text != "" {
		metadata["progress"], _ = strictjson.Marshal([]wire.Item{{Thinking: &text}})
	}
	return encode(wire.TypeTaskResult, id, struct {
		wire.TaskRef
		Status   string          `json:"status"`
		Result   json.RawMessage `json:"result"`
		Metadata wire.Members    `json:"metadata"`
	}{ref, wire.StatusCompleted, value, metadata}), ignored
}

// convertMetadata gives the known members the types that they have on a WebSocket, and
// removes those of another type.
func convertMetadata(metadata wire.Members) (ignored string) {
	for name := range metadata {
		text, _ := wire.Unquoted(metadata[name])
		switch name {
		case "tokensUsed":
			if n, err := strconv.ParseInt(text, 10, 53); err == nil && n >= 0 {
				metadata[name] = number(float64(n))
				continue
			}
		case "truncated":
			if text == "true" || text == "false" {
				metadata[name] = json.RawMessage(text)
				continue
			}
		case "progress", "progressOmitted":
		default:
			continue
		}
		delete(metadata, name)
		ignored = "metadata"
	}
	return ignored
}

// refOf returns the task of an answer. Its request is the execution, which is the task
// and the number of the attempt. Agents must repeat the task too, but may leave it out.
func refOf(request, task string) wire.TaskRef {
	ref := wire.TaskRef{TaskID: task, ExecutionID: request}
	if i := strings.LastIndexByte(request, '.'); task == "" && i > 0 {
		ref.TaskID = request[:i]
	}
	return ref
}

func quoted(texts map[string]string) wire.Members {
	ms := wire.Members{}
	for name, text := range texts {
		ms[name] = strictjson.Encode(text)
	}
	return ms
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// number returns a finite number as JSON.
func number(f float64) json.RawMessage {
	b, _ := strictjson.Marshal(f)
	return b
}
