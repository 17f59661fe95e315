package control

import (
	"encoding/json"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// The statuses of an execution.
const (
	statusPending   = "pending"
	statusRunning   = "running"
	statusCompleted = "completed"
	statusFailed    = "failed"
	statusCancelled = "cancelled"
)

// execution is the view of a task.
type execution struct {
	ID          core.TaskID     `json:"id"`
	PatternName string          `json:"patternName,omitempty"`
	To          core.Address    `json:"to"`
	AgentID     core.AgentID    `json:"agentId,omitempty"`
	StartTime   time.Time       `json:"startTime,omitzero"`
	EndTime     *time.Time      `json:"endTime,omitempty"`
	Status      string          `json:"status"`
	Result      json.RawMessage `json:"result,omitempty"`
	Confidence  json.RawMessage `json:"confidence,omitempty"`
	// Error is a string with Code beside it, as in every error of the control plane.
	Error   string       `json:"error,omitempty"`
	Code    string       `json:"code,omitempty"`
	Metrics metrics      `json:"metrics"`
	Webhook *webhookView `json:"webhook,omitempty"`
}

// metrics are the numbers of an execution.
type metrics struct {
	Duration   int64           `json:"duration"` // in milliseconds, so far
	AgentCount int             `json:"agentCount"`
	Success    bool            `json:"success"`
	TokensUsed int64           `json:"tokensUsed,omitempty"`
	Confidence json.RawMessage `json:"confidence,omitempty"`
}

// executionOf returns the view of a task.
func executionOf(t *task.Task) (execution, error) {
	queued := t.Agent() == "" // before the events, which may have an assignment since
	events, r := t.Events(), t.Request()
	a := core.Fold(events)
	first, last := events[0], events[len(events)-1]
	e := execution{ID: t.ID(), PatternName: patternOf(r), To: r.To, AgentID: t.Agent(), StartTime: first.At, Status: statusRunning}
	e.Metrics.TokensUsed = a.TokensUsed
	e.Metrics.Duration = time.Since(first.At).Milliseconds()
	if e.AgentID != "" {
		e.Metrics.AgentCount = 1
	}
	if a.End == 0 {
		if queued {
			e.Status = statusPending
		}
		return e, nil
	}
	e.EndTime, e.Metrics.Duration = &last.At, last.At.Sub(first.At).Milliseconds()
	e.Confidence = foreignOf(last.Foreign).Metadata.Confidence
	e.Metrics.Confidence = e.Confidence
	if a.Fault != nil {
		e.Error, e.Code = a.Fault.Message, wire.CodeOf(a.Fault)
	}
	switch a.End {
	case core.KindDone:
		e.Status, e.Metrics.Success = statusCompleted, true
		result, err := wire.EncodeResult(a)
		e.Result = result
		return e, err
	case core.KindCancelled:
		e.Status = statusCancelled
	default:
		e.Status = statusFailed
	}
	return e, nil
}

// foreignPayload has the unknown members of a Parallax peer's payload that an execution
// shows.
type foreignPayload struct {
	PatternName string `json:"patternName"`
	Metadata    struct {
		Confidence json.RawMessage `json:"confidence"`
	} `json:"metadata"`
}

func foreignOf(f *core.Foreign) (p foreignPayload) {
	if !wire.DecodeForeign(f, &p) {
		return foreignPayload{}
	}
	return p
}

func patternOf(r core.Request) string { return foreignOf(r.Foreign).PatternName }
