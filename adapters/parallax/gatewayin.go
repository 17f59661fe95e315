package parallax

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	wire "github.com/dragoman-hub/dragoman/proto/parallax/gateway"
)

// fromGateway is what an agent of the gateway says, as one of a WebSocket would say
// it; nil for what means nothing to the hub. ignored names what was left out.
func fromGateway(m *wire.AgentToControlPlane) (frame []byte, ignored string) {
	id := m.GetRequestId()
	switch p := m.GetPayload().(type) {
	case *wire.AgentToControlPlane_Hello:
		return frameOf(typeRegister, id, registerOf(p.Hello)), ""
	case *wire.AgentToControlPlane_Heartbeat:
		return frameOf(typeHeartbeat, id, heartbeatOf(p.Heartbeat)), ""
	case *wire.AgentToControlPlane_TaskResult:
		return resultFrame(id, p.TaskResult)
	case *wire.AgentToControlPlane_TaskError:
		e := taskError{about: aboutOf(id, p.TaskError.GetTaskId()), Error: errorMsg{orText(cut(p.TaskError.GetErrorCode()), codeProcessing), p.TaskError.GetErrorMessage()}}
		return frameOf(typeTaskError, id, e), ""
	case *wire.AgentToControlPlane_ThreadSpawnResult, *wire.AgentToControlPlane_ThreadEvent, *wire.AgentToControlPlane_ThreadStatusUpdate:
		return nil, "thread" // the hub starts none
	}
	return nil, "unknown_message"
}

// frameOf is encode for payloads that are made here, which always encode.
func frameOf(kind, id string, payload any) []byte {
	if len(id) > core.MaxIDBytes {
		id = "" // nothing is answered by it
	}
	frame, err := encode(kind, id, time.Now(), payload)
	if err != nil {
		return nil
	}
	return frame
}

// registerOf is a hello. What an agent of a WebSocket says in its config stands in
// the metadata, as text.
func registerOf(h *wire.AgentHello) register {
	r := register{AgentID: h.GetAgentId(), Capabilities: h.GetCapabilities(), Metadata: members{}}
	if r.Capabilities == nil {
		r.Capabilities = []string{}
	}
	for name, text := range h.GetMetadata() {
		r.Metadata[name] = quoted(text)
	}
	if h.GetAgentName() != "" {
		r.Metadata["name"] = quoted(h.GetAgentName())
	}
	r.Config.HeartbeatInterval = count(h.GetHeartbeatIntervalMs())
	if r.Config.HeartbeatInterval <= 0 {
		r.Config.HeartbeatInterval = count(DefaultHeartbeatInterval / time.Millisecond)
	}
	if n, err := strconv.ParseInt(h.GetMetadata()["maxConcurrentTasks"], 10, 32); err == nil {
		r.Config.MaxConcurrentTasks = count(n)
	}
	return r
}

func heartbeatOf(h *wire.AgentHeartbeat) heartbeat {
	b := heartbeat{Status: h.GetStatus(), Metrics: members{}}
	for name, text := range h.GetExtra() {
		b.Metrics[name] = quoted(text)
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
func resultFrame(id string, r *wire.TaskResult) (frame []byte, ignored string) {
	who := aboutOf(id, r.GetTaskId())
	value := json.RawMessage("null")
	if text := strings.TrimSpace(r.GetValueJson()); text != "" {
		value = json.RawMessage(text)
		if err := strictjson.Check(value, gatewayLimits); err != nil {
			e := errorMsg{codeProcessing, "the agent's result is no JSON that can be passed on: value_json: " + wording(err)}
			return frameOf(typeTaskError, id, taskError{about: who, Error: e}), ""
		}
	}
	metadata := members{}
	for name, text := range r.GetMetadata() {
		metadata[name] = quoted(text)
	}
	ignored = settleMetadata(metadata)
	if c := r.GetConfidence(); finite(c) {
		metadata["confidence"] = numeral(c)
	}
	if text := r.GetReasoning(); text != "" {
		// Its reasons are what an agent thinks, in the words of every other dialect.
		metadata["progress"], _ = marshal([]item{{Thinking: &text}})
	}
	return frameOf(typeTaskResult, id, struct {
		about
		Status   string          `json:"status"`
		Result   json.RawMessage `json:"result"`
		Metadata members         `json:"metadata"`
	}{who, statusCompleted, value, metadata}), ignored
}

// settleMetadata gives the metadata with a meaning the form that it has on a WebSocket, and
// leaves out what has none of it.
func settleMetadata(metadata members) (ignored string) {
	for name := range metadata {
		text, _ := stringOf(metadata[name])
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
func aboutOf(request, task string) about {
	a := about{TaskID: task, ExecutionID: request}
	if i := strings.LastIndexByte(request, '.'); task == "" && i > 0 {
		a.TaskID = request[:i]
	}
	return a
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

func quoted(text string) json.RawMessage {
	b, _ := marshal(text) // a text always encodes
	return b
}

func numeral(f float64) json.RawMessage {
	b, _ := marshal(f) // one that is finite always encodes
	return b
}
