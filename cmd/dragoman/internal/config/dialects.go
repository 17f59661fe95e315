package config

import "time"

// maxWait is the maximum of a deadline, and of a wait of a client.
const maxWait = int64(168 * time.Hour)

// In each dialect KeepTasks keeps tasks running whose requester has disconnected.

// Coven are the settings of the Coven dialect.
type Coven struct {
	MaxConcurrent int
	Deadline      time.Duration
	KeepTasks     bool
	// Secrets is the path of the secrets file. The secrets are not settings, so that they are
	// never shown.
	Secrets string
}

func (c *Coven) settings(t *table) {
	add(t, "max_concurrent", &c.MaxConcurrent, 1, "Number of requests that a Coven agent gets at a time.").atLeast(1)
	add(t, "deadline", &c.Deadline, 600*time.Second, "Default deadline of a request from a Coven agent or client.").atMost(maxWait)
	add(t, "keep_tasks", &c.KeepTasks, false, "Keep a task that an agent asked for with agent_ask running when the agent disconnects. Delegated tasks always keep running.")
	add(t, "secrets", &c.Secrets, "", "YAML file with the secrets that Coven agents are given when they join; see the page about Coven.").path()
}

// Parallax are the settings of the Parallax dialect.
type Parallax struct {
	TaskTimeout, HeartbeatInterval time.Duration
	MessageBytes                   int
	MessagesPerSecond              int
	KeepTasks                      bool
	// Secrets is the path of the file of signing secrets.
	Secrets           string
	RequireSignatures bool
}

func (p *Parallax) settings(t *table) {
	add(t, "task_timeout", &p.TaskTimeout, 30*time.Second, "Default deadline of a request from a Parallax agent; sent to agents as taskTimeout.").atMost(maxWait)
	add(t, "heartbeat_interval", &p.HeartbeatInterval, 10*time.Second, "Time between two heartbeats of an agent.")
	add(t, "message_bytes", &p.MessageBytes, 1_000_000, "Maximum size of a message.").bytes().atLeast(1024)
	add(t, "messages_per_second", &p.MessagesPerSecond, 100, "Maximum rate at which an agent's messages are read, after a burst. 0 or -1 sets no limit.").atLeast(-1)
	add(t, "secrets", &p.Secrets, "", "YAML file with the secrets that Parallax agents sign messages with; see the page about Parallax.").path()
	add(t, "require_signatures", &p.RequireSignatures, false, "Accept only signed messages from Parallax agents.")
	add(t, "keep_tasks", &p.KeepTasks, false, "Keep a task that an agent asked for with task_request running when the agent disconnects.")
}

// ACP are the settings of the ACP dialect.
type ACP struct {
	Deadline, DelegateDeadline time.Duration
	EnvelopeBytes              int
	KeepResults                time.Duration
	KeepTasks                  bool
}

func (a *ACP) settings(t *table) {
	add(t, "deadline", &a.Deadline, 30*time.Second, "Default deadline of a query.").atMost(maxWait)
	add(t, "delegate_deadline", &a.DelegateDeadline, time.Hour, "Default deadline of a delegate.").atMost(maxWait)
	add(t, "envelope_bytes", &a.EnvelopeBytes, 1_000_000, "Maximum size of an envelope.").bytes().atLeast(1024)
	add(t, "keep_results", &a.KeepResults, 10*time.Minute, "How long a late result waits for a requester that is disconnected, and every message for an HTTP peer that does not read.")
	add(t, "keep_tasks", &a.KeepTasks, false, "Keep a query running when the peer that sent it disconnects. Delegated tasks always keep running.")
}

// Native are the settings of the native dialect.
type Native struct {
	Deadline   time.Duration
	FrameBytes int
}

func (n *Native) settings(t *table) {
	add(t, "deadline", &n.Deadline, 4*time.Hour, "Default deadline of a request. How long people are waited for does not count.").atMost(maxWait)
	add(t, "frame_bytes", &n.FrameBytes, 10<<20, "Maximum size of a frame from a peer.").bytes().atLeast(1024)
}

// Editor are the settings of the protocol of editors.
type Editor struct {
	Deadline     time.Duration
	MessageBytes int
	KeepTasks    bool
}

func (e *Editor) settings(t *table) {
	add(t, "deadline", &e.Deadline, 4*time.Hour, "Default deadline of a prompt. How long people are waited for does not count.").atMost(maxWait)
	add(t, "message_bytes", &e.MessageBytes, 10<<20, "Maximum size of a message, such as a prompt with images.").bytes().atLeast(4096)
	add(t, "keep_tasks", &e.KeepTasks, true, "Keep a prompt running when the editor disconnects; session/load shows what became of it.")
}

// REST are the settings of the hub's own HTTP interface.
type REST struct {
	Deadline  time.Duration
	BodyBytes int
}

func (r *REST) settings(t *table) {
	add(t, "deadline", &r.Deadline, 4*time.Hour, "Default deadline of a task. How long people are waited for does not count.").atMost(maxWait)
	add(t, "body_bytes", &r.BodyBytes, 24<<20, "Maximum size of a request body, in which attachments are base64 and take a third more. What is asked may have limits.request_bytes.").bytes().atLeast(1024)
}

// MCP are the settings of the MCP endpoint.
type MCP struct {
	// Endpoint is the URL that agents get instead of that of the HTTP listener.
	Endpoint              string
	Deadline, CallTimeout time.Duration
	BodyBytes             int
}

func (m *MCP) settings(t *table) {
	add(t, "endpoint", &m.Endpoint, "", "URL of the MCP endpoint as agents reach it, such as https://hub.example.com/mcp. Empty gives agents the address of the HTTP listener.").matching(`^(https?://.+)?$`, "an http or https address")
	add(t, "deadline", &m.Deadline, 600*time.Second, "Default deadline of a request without a token.").atMost(maxWait)
	add(t, "call_timeout", &m.CallTimeout, time.Hour, "Maximum duration of one tool call.").atMost(maxWait)
	add(t, "body_bytes", &m.BodyBytes, 1_000_000, "Maximum size of a message.").bytes().atLeast(1024)
}
