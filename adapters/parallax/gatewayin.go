package parallax

import (
	"cmp"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	pb "github.com/dragoman-hub/dragoman/proto/parallax/gateway"
)

// fromGateway is what an agent of the gateway says, as one of a WebSocket would say
// it; nil for what means nothing to the hub. ignored names what was left out.
func fromGateway(m *pb.AgentToControlPlane) (frame []byte, ignored string) {
	id := m.GetRequestId()
	switch p := m.GetPayload().(type) {
	case *pb.AgentToControlPlane_Hello:
		return frameOf(wire.TypeRegister, id, registerOf(p.Hello)), ""
	case *pb.AgentToControlPlane_Heartbeat:
		return frameOf(wire.TypeHeartbeat, id, heartbeatOf(p.Heartbeat)), ""
	case *pb.AgentToControlPlane_TaskResult:
		return resultFrame(id, p.TaskResult)
	case *pb.AgentToControlPlane_TaskError:
		e := wire.TaskError{TaskRef: aboutOf(id, p.TaskError.GetTaskId()), Error: wire.ErrorDetail{Code: cmp.Or(wire.Shorten(p.TaskError.GetErrorCode()), wire.CodeProcessing), Message: p.TaskError.GetErrorMessage()}}
		return frameOf(wire.TypeTaskError, id, e), ""
	case *pb.AgentToControlPlane_ThreadSpawnResult, *pb.AgentToControlPlane_ThreadEvent, *pb.AgentToControlPlane_ThreadStatusUpdate:
		return nil, "thread" // the hub starts none
	}
	return nil, "unknown_message"
}

// frameOf is encode for payloads that are made here, which always encode.
func frameOf(kind, id string, payload any) []byte {
	if len(id) > core.MaxIDBytes {
		id = "" // nothing is answered by it
	}
	frame, err := wire.Encode(kind, id, time.Now(), payload)
	if err != nil {
		return nil
	}
	return frame
}

// registerOf is a hello. What an agent of a WebSocket says in its config stands in
// the metadata, as text.
func registerOf(h *pb.AgentHello) wire.Register {
	r := wire.Register{AgentID: h.GetAgentId(), Capabilities: h.GetCapabilities(), Metadata: wire.Members{}}
	if r.Capabilities == nil {
		r.Capabilities = []string{}
	}
	for name, text := range h.GetMetadata() {
		r.Metadata[name] = wire.Quoted(text)
	}
	if h.GetAgentName() != "" {
		r.Metadata["name"] = wire.Quoted(h.GetAgentName())
	}
	r.Config.HeartbeatInterval = wire.Count(h.GetHeartbeatIntervalMs())
	if r.Config.HeartbeatInterval <= 0 {
		r.Config.HeartbeatInterval = wire.Count(DefaultHeartbeatInterval / time.Millisecond)
	}
	if n, err := strconv.ParseInt(h.GetMetadata()["maxConcurrentTasks"], 10, 32); err == nil {
		r.Config.MaxConcurrentTasks = wire.Count(n)
	}
	return r
}

func heartbeatOf(h *pb.AgentHeartbeat) wire.Heartbeat {
	b := wire.Heartbeat{Status: h.GetStatus(), Metrics: wire.Members{}}
	for name, text := range h.GetExtra() {
		b.Metrics[name] = wire.Quoted(text)
		if f, err := strconv.ParseFloat(text, 64); err == nil && finite(f) {
			b.Metrics[name] = numeral(f)
		}
	}
	if load := h.GetLoad(); finite(load) {
		b.Metrics["load"] = numeral(load)
	}
	return b
}

// resultFrame is a result, or the error that its value makes of it: one that is no
// JSON must not be taken for an answer.
func resultFrame(id string, r *pb.TaskResult) (frame []byte, ignored string) {
	who := aboutOf(id, r.GetTaskId())
	value := json.RawMessage("null")
	if text := strings.TrimSpace(r.GetValueJson()); text != "" {
		value = json.RawMessage(text)
		if err := strictjson.Check(value, gatewayLimits); err != nil {
			e := wire.ErrorDetail{Code: wire.CodeProcessing, Message: "the agent's result is no JSON that can be passed on: value_json: " + wire.Explain(err)}
			return frameOf(wire.TypeTaskError, id, wire.TaskError{TaskRef: who, Error: e}), ""
		}
	}
	metadata := wire.Members{}
	for name, text := range r.GetMetadata() {
		metadata[name] = wire.Quoted(text)
	}
	ignored = settleMetadata(metadata)
	if c := r.GetConfidence(); finite(c) {
		metadata["confidence"] = numeral(c)
	}
	if text := r.GetReasoning(); text != "" {
		// Its reasons are what an agent thinks, in the words of every other dialect.
		metadata["progress"], _ = wire.Marshal([]wire.Item{{Thinking: &text}})
	}
	return frameOf(wire.TypeTaskResult, id, struct {
		wire.TaskRef
		Status   string          `json:"status"`
		Result   json.RawMessage `json:"result"`
		Metadata wire.Members    `json:"metadata"`
	}{who, wire.StatusCompleted, value, metadata}), ignored
}

// settleMetadata gives the metadata with a meaning the form that it has on a WebSocket, and
// leaves out what has none of it.
func settleMetadata(metadata wire.Members) (ignored string) {
	for name := range metadata {
		text, _ := wire.Unquoted(metadata[name])
		switch name {
		case "tokensUsed":
			if n, err := strconv.ParseInt(text, 10, 53); err == nil && n >= 0 {
				metadata[name] = numeral(float64(n))
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

// aboutOf finds the task that an answer is of. The request is the execution of a
// task, as executionOf made it; agents are to repeat it and the task both.
func aboutOf(request, task string) wire.TaskRef {
	a := wire.TaskRef{TaskID: task, ExecutionID: request}
	if i := strings.LastIndexByte(request, '.'); task == "" && i > 0 {
		a.TaskID = request[:i]
	}
	return a
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

func numeral(f float64) json.RawMessage {
	b, _ := wire.Marshal(f) // one that is finite always encodes
	return b
}
