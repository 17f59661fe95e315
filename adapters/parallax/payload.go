package parallax

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Dialect is the name of the dialect in cards, principals and events.
const Dialect = "parallax"

// The types of message. Those of the protocol's page come first, in its order;
// the extensions follow.
const (
	typeRegister     = "register"
	typeTaskResult   = "task_result"
	typeTaskError    = "task_error"
	typeHeartbeat    = "heartbeat"
	typeStatusUpdate = "status_update"
	typeDisconnect   = "disconnect"

	typeRegistered    = "registered"
	typeTask          = "task"
	typeTaskCancelled = "task_cancelled"
	typeHeartbeatAck  = "heartbeat_ack"
	typeConfigUpdate  = "config_update"
	typeError         = "error"

	typeTaskAccepted = "task_accepted"
	typeTaskProgress = "task_progress"
	typeTaskRequest  = "task_request"
	typeTaskCancel   = "task_cancel"
)

// The extensions, by the names that register.payload.config.extensions lists.
const (
	extAccepted = "task_accepted"
	extProgress = "task_progress"
	extRequest  = "task_request"
)

// capabilityNotify is declared by agents that want to be told notices.
const capabilityNotify = "notify"

type register struct {
	AgentID      string         `json:"agentId,omitempty"`
	Capabilities []string       `json:"capabilities"`
	Domains      []string       `json:"domains,omitempty"`
	Metadata     members        `json:"metadata,omitempty"`
	Config       registerConfig `json:"config,omitzero"`
}

type registerConfig struct {
	MaxConcurrentTasks count    `json:"maxConcurrentTasks,omitempty"`
	TaskTimeout        count    `json:"taskTimeout,omitempty"`
	Extensions         []string `json:"extensions,omitempty"`
	// HeartbeatInterval is how often the agent is going to send a heartbeat. It is an
	// addition to the page, which has it the other way round alone; agents of the
	// gateway choose it.
	HeartbeatInterval count `json:"heartbeatInterval,omitempty"`
}

// The least and the most that an agent may choose between its heartbeats.
const (
	leastHeartbeat = time.Second
	mostHeartbeat  = 5 * time.Minute
)

// mostTaskTimeout is the most that an agent may allow for a task: no deadline is further
// away.
const mostTaskTimeout = 365 * 24 * time.Hour

// heartbeat is the interval that the agent chose, within bounds; 0 for none.
func (c registerConfig) heartbeat() time.Duration {
	if c.HeartbeatInterval <= 0 {
		return 0
	}
	return max(leastHeartbeat, min(milliseconds(c.HeartbeatInterval), mostHeartbeat))
}

type registered struct {
	AgentID      string           `json:"agentId"`
	ConnectionID string           `json:"connectionId,omitempty"`
	Capabilities []string         `json:"capabilities"`
	Config       registeredConfig `json:"config"`
}

type registeredConfig struct {
	HeartbeatInterval  count    `json:"heartbeatInterval"`
	TaskTimeout        count    `json:"taskTimeout"`
	MaxConcurrentTasks count    `json:"maxConcurrentTasks,omitempty"`
	Extensions         []string `json:"extensions,omitempty"`
}

type heartbeat struct {
	Status      string  `json:"status,omitempty"`
	ActiveTasks count   `json:"activeTasks"`
	Metrics     members `json:"metrics,omitempty"`
}

type heartbeatAck struct {
	ServerTime    string `json:"serverTime"`
	NextHeartbeat count  `json:"nextHeartbeat"`
}

type statusUpdate struct {
	Status       string   `json:"status,omitempty"`
	Capabilities []string `json:"capabilities,omitempty"`
	MaxTasks     *count   `json:"maxTasks,omitempty"`
	Reason       string   `json:"reason,omitempty"`
}

type disconnect struct {
	Reason   string `json:"reason,omitempty"`
	Graceful bool   `json:"graceful"`
}

type configUpdate struct {
	Config updatedConfig `json:"config"`
	Reason string        `json:"reason,omitempty"`
}

type updatedConfig struct {
	HeartbeatInterval  count `json:"heartbeatInterval,omitempty"`
	MaxConcurrentTasks count `json:"maxConcurrentTasks,omitempty"`
}

type refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Fatal   bool   `json:"fatal"`
}

// about names the task that a message is about: by the hub's own id, and, in
// what the hub sends to an agent that asked (task_request), by the id that the
// agent gave its request.
type about struct {
	RequestID   string `json:"requestId,omitempty"`
	TaskID      string `json:"taskId,omitempty"`
	ExecutionID string `json:"executionId,omitempty"`
}

type taskCancelled struct {
	about
	Reason string `json:"reason,omitempty"`
}

type taskAccepted struct {
	about
	EstimatedMs count `json:"estimatedMs,omitempty"`
}

var acceptedShape = shape{"requestId": nil, "taskId": nil, "executionId": nil, "estimatedMs": nil}

// members are the members of a JSON object, values verbatim.
type members = map[string]json.RawMessage

// membersIn are the members of an object that was checked before; nil of anything else.
func membersIn(object json.RawMessage) members {
	all, err := strictjson.Members(object, strictjson.Limits{Bytes: len(object)})
	if err != nil || all == nil {
		return nil
	}
	ms := make(members, len(all))
	for _, m := range all {
		ms[string(m.Key)] = m.Value
	}
	return ms
}

// count is a whole number as peers write it: 30000, 30000.0 and 3e4 are the same
// number to the languages they are written in. Fractions are rounded.
type count int64

// UnmarshalJSON accepts any JSON number.
func (c *count) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	if i, err := strconv.ParseInt(string(b), 10, 64); err == nil {
		*c = count(i)
		return nil
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return errors.New("want a number")
	}
	const far = 1 << 53 // beyond this a float holds no whole number exactly
	*c = count(math.Round(max(-far, min(f, far))))
	return nil
}
