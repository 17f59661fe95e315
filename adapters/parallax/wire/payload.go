package wire

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"time"
)

// Dialect is the name of the dialect in cards, principals and events.
const Dialect = "parallax"

// The types of message: those of the page in its order, then the extensions.
const (
	TypeRegister     = "register"
	TypeTaskResult   = "task_result"
	TypeTaskError    = "task_error"
	TypeHeartbeat    = "heartbeat"
	TypeStatusUpdate = "status_update"
	TypeDisconnect   = "disconnect"

	TypeRegistered    = "registered"
	TypeTask          = "task"
	TypeTaskCancelled = "task_cancelled"
	TypeHeartbeatAck  = "heartbeat_ack"
	TypeConfigUpdate  = "config_update"
	TypeError         = "error"

	TypeTaskAccepted = "task_accepted"
	TypeTaskProgress = "task_progress"
	TypeTaskRequest  = "task_request"
	TypeTaskCancel   = "task_cancel"
)

// The extensions, as in register.payload.config.extensions.
const (
	ExtensionAccepted = "task_accepted"
	ExtensionProgress = "task_progress"
	ExtensionRequest  = "task_request"
)

// CapabilityNotify is the capability of agents that take notices.
const CapabilityNotify = "notify"

// Register is the payload of register.
type Register struct {
	AgentID      string         `json:"agentId,omitempty"`
	Capabilities []string       `json:"capabilities"`
	Domains      []string       `json:"domains,omitempty"`
	Metadata     Members        `json:"metadata,omitempty"`
	Config       RegisterConfig `json:"config,omitzero"`
}

// RegisterConfig is the part of register that configures the agent.
type RegisterConfig struct {
	MaxConcurrentTasks Count    `json:"maxConcurrentTasks,omitempty"`
	TaskTimeout        Count    `json:"taskTimeout,omitempty"`
	Extensions         []string `json:"extensions,omitempty"`
	// HeartbeatInterval is an addition to the page, on which only the hub chooses the
	// interval. Agents of the gateway choose it.
	HeartbeatInterval Count `json:"heartbeatInterval,omitempty"`
}

// The bounds of the heartbeat interval that an agent may choose.
const (
	minHeartbeat = time.Second
	maxHeartbeat = 5 * time.Minute
)

// MaxTaskTimeout is the maximum task timeout of an agent.
const MaxTaskTimeout = 365 * 24 * time.Hour

// Heartbeat returns the interval that the agent chose, within bounds; 0 for none.
func (c RegisterConfig) Heartbeat() time.Duration {
	if c.HeartbeatInterval <= 0 {
		return 0
	}
	return max(minHeartbeat, min(Milliseconds(c.HeartbeatInterval), maxHeartbeat))
}

// Registered is the payload of registered, the answer to register.
type Registered struct {
	AgentID      string           `json:"agentId"`
	ConnectionID string           `json:"connectionId,omitempty"`
	Capabilities []string         `json:"capabilities"`
	Config       RegisteredConfig `json:"config"`
}

// RegisteredConfig is the configuration that the hub confirms in registered.
type RegisteredConfig struct {
	HeartbeatInterval  Count    `json:"heartbeatInterval"`
	TaskTimeout        Count    `json:"taskTimeout"`
	MaxConcurrentTasks Count    `json:"maxConcurrentTasks,omitempty"`
	Extensions         []string `json:"extensions,omitempty"`
}

// Heartbeat is the payload of heartbeat.
type Heartbeat struct {
	Status      string  `json:"status,omitempty"`
	ActiveTasks Count   `json:"activeTasks"`
	Metrics     Members `json:"metrics,omitempty"`
}

// HeartbeatAck is the payload of heartbeat_ack.
type HeartbeatAck struct {
	ServerTime    string `json:"serverTime"`
	NextHeartbeat Count  `json:"nextHeartbeat"`
}

// StatusUpdate is the payload of status_update.
type StatusUpdate struct {
	Status       string   `json:"status,omitempty"`
	Capabilities []string `json:"capabilities,omitempty"`
	MaxTasks     *Count   `json:"maxTasks,omitempty"`
	Reason       string   `json:"reason,omitempty"`
}

// Disconnect is the payload of disconnect.
type Disconnect struct {
	Reason   string `json:"reason,omitempty"`
	Graceful bool   `json:"graceful"`
}

// ConfigUpdate is the payload of config_update.
type ConfigUpdate struct {
	Config UpdatedConfig `json:"config"`
	Reason string        `json:"reason,omitempty"`
}

// UpdatedConfig has the settings that a config_update changes.
type UpdatedConfig struct {
	HeartbeatInterval  Count `json:"heartbeatInterval,omitempty"`
	MaxConcurrentTasks Count `json:"maxConcurrentTasks,omitempty"`
}

// Refusal is the payload of error.
type Refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Fatal   bool   `json:"fatal"`
}

// TaskRef identifies the task of a message: by the hub's ids, and in a message to an
// agent that sent a task_request also by the id of that request.
type TaskRef struct {
	RequestID   string `json:"requestId,omitempty"`
	TaskID      string `json:"taskId,omitempty"`
	ExecutionID string `json:"executionId,omitempty"`
}

// TaskCancelled is the payload of task_cancelled.
type TaskCancelled struct {
	TaskRef
	Reason string `json:"reason,omitempty"`
}

// TaskAccepted is the payload of task_accepted.
type TaskAccepted struct {
	TaskRef
	EstimatedMs Count `json:"estimatedMs,omitempty"`
}

// AcceptedShape names the members of task_accepted that the hub knows.
var AcceptedShape = shape{"requestId": nil, "taskId": nil, "executionId": nil, "estimatedMs": nil}

// Members are the members of a JSON object, with unparsed values.
type Members = map[string]json.RawMessage

// Count is a whole number in any JSON form: 30000, 30000.0 and 3e4 are the same number
// in the languages of most peers. Fractions are rounded.
type Count int64

// UnmarshalJSON accepts any JSON number.
func (c *Count) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	if i, err := strconv.ParseInt(string(b), 10, 64); err == nil {
		*c = Count(i)
		return nil
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return errors.New("want a number")
	}
	const most = 1 << 53 // a larger float64 does not hold every whole number
	*c = Count(math.Round(max(-most, min(f, most))))
	return nil
}
