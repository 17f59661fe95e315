package config

import (
	"fmt"
	"maps"
	"reflect"
	"time"

	"github.com/spf13/pflag"
)

// Config are the settings of a hub. A flag wins over the environment, which wins
// over the YAML file, which wins over the default. The names in the file are the
// koanf tags; a flag has dashes for underscores, a variable is in capitals with
// DRAGOMAN_ in front. schemas/config.json describes each.
type Config struct {
	// Places are where the settings stand that do not have their default.
	Places origins `koanf:"-"`

	GRPCAddr  string `koanf:"grpc_addr"`
	HTTPAddr  string `koanf:"http_addr"`
	PiAddr    string `koanf:"pi_addr"`
	PiSocket  string `koanf:"pi_socket"`
	DataDir   string `koanf:"data_dir"`
	Stdio     bool   `koanf:"stdio"`
	Insecure  bool   `koanf:"insecure"`
	LogLevel  string `koanf:"log_level"`
	LogFormat string `koanf:"log_format"`
	ReadyFile string `koanf:"ready_file"`

	// Hosts and Origins may use the HTTP surfaces beside the loopback names.
	Hosts   []string `koanf:"hosts"`
	Origins []string `koanf:"origins"`
	// StopTimeout is how long running tasks may take to finish at stop.
	StopTimeout time.Duration `koanf:"stop_timeout"`

	Journal Journal `koanf:"journal"`
	Usage   Usage   `koanf:"usage"`
	// Budgets are the limits on what may be spent.
	Budgets Budgets `koanf:"budgets"`
	Limits  Limits  `koanf:"limits"`

	GRPC      GRPC      `koanf:"grpc"`
	HTTP      HTTP      `koanf:"http"`
	WebSocket WebSocket `koanf:"websocket"`

	Auth     Auth     `koanf:"auth"`
	Coven    Coven    `koanf:"coven"`
	Parallax Parallax `koanf:"parallax"`
	ACP      ACP      `koanf:"acp"`
	Pi       Pi       `koanf:"pi"`
	REST     REST     `koanf:"rest"`
	MCP      MCP      `koanf:"mcp"`
}

// noSetting is the koanf tag of a field that is none.
const noSetting = "-"

// Journal says where tasks are recorded and for how long.
type Journal struct {
	Sync    string        `koanf:"sync"`
	NATSURL string        `koanf:"nats_url"`
	Name    string        `koanf:"name"`
	Age     time.Duration `koanf:"age"`
	Bytes   int64         `koanf:"bytes"`
	Lag     time.Duration `koanf:"lag"`
}

// Usage says for how long it is kept what was spent.
type Usage struct {
	Age   time.Duration `koanf:"age"`
	Bytes int64         `koanf:"bytes"`
}

// Limits are the numbers of the engine: see hub.Limits.
type Limits struct {
	// Memory is what GOMEMLIMIT is set from.
	Memory          int64         `koanf:"memory"`
	Hops            int           `koanf:"hops"`
	QueueLength     int           `koanf:"queue_length"`
	Retries         int           `koanf:"retries"`
	CancelGrace     time.Duration `koanf:"cancel_grace"`
	SlotGrace       time.Duration `koanf:"slot_grace"`
	Disconnect      string        `koanf:"disconnect"`
	ApprovalTimeout time.Duration `koanf:"approval_timeout"`
	QuestionTimeout time.Duration `koanf:"question_timeout"`
	Questions       int           `koanf:"questions"`
	CauseMemory     time.Duration `koanf:"cause_memory"`
	Packs           int           `koanf:"packs"`
	PackTools       int           `koanf:"pack_tools"`
	PackCalls       int           `koanf:"pack_calls"`
	ToolTimeout     time.Duration `koanf:"tool_timeout"`
	MaxToolTimeout  time.Duration `koanf:"max_tool_timeout"`
	KeepNotices     time.Duration `koanf:"keep_notices"`
	NoticeBytes     int           `koanf:"notice_bytes"`
	TaskBytes       int           `koanf:"task_bytes"`
	HistoryBytes    int           `koanf:"history_bytes"`
	RequestBytes    int           `koanf:"request_bytes"`
	MaxDeadline     time.Duration `koanf:"max_deadline"`
	Threads         int           `koanf:"threads"`
	FinishedTasks   int           `koanf:"finished_tasks"`
	FinishedBytes   int           `koanf:"finished_bytes"`
	UnrecordedBytes int           `koanf:"unrecorded_bytes"`
}

// GRPC bounds the connections of gRPC.
type GRPC struct {
	Connections int `koanf:"connections"`
	// PingInterval and PingTimeout are the hub's own pings, MinClientPing bounds
	// those of clients.
	PingInterval  time.Duration `koanf:"ping_interval"`
	PingTimeout   time.Duration `koanf:"ping_timeout"`
	MinClientPing time.Duration `koanf:"min_client_ping"`
}

// HTTP bounds the connections of each HTTP listener.
type HTTP struct {
	Connections int `koanf:"connections"`
}

// WebSocket is the keepalive of every WebSocket, and its patience with a peer
// that takes nothing.
type WebSocket struct {
	PingInterval time.Duration `koanf:"ping_interval"`
	PingTimeout  time.Duration `koanf:"ping_timeout"`
	WriteTimeout time.Duration `koanf:"write_timeout"`
}

// Auth says who may come in.
type Auth struct {
	// Tokens is the path of the file: what stands in it is no setting, so that nothing
	// shows it.
	Tokens string `koanf:"tokens"`
}

// In each dialect KeepTasks says whether what was asked runs on when its requester
// has gone.

// Coven are the settings of the Coven dialect.
type Coven struct {
	MaxConcurrent   int           `koanf:"max_concurrent"`
	Deadline        time.Duration `koanf:"deadline"`
	RegisterTimeout time.Duration `koanf:"register_timeout"`
	OrphanGrace     time.Duration `koanf:"orphan_grace"`
	KeepTasks       bool          `koanf:"keep_tasks"`
	Remember        time.Duration `koanf:"remember"`
	ToolCalls       int           `koanf:"tool_calls"`
	// Secrets is the path of the file: what stands in it is no setting, so that
	// nothing shows it.
	Secrets string `koanf:"secrets"`
}

// Parallax are the settings of the Parallax dialect.
type Parallax struct {
	TaskTimeout       time.Duration `koanf:"task_timeout"`
	HeartbeatInterval time.Duration `koanf:"heartbeat_interval"`
	MessageBytes      int           `koanf:"message_bytes"`
	MessagesPerSecond int           `koanf:"messages_per_second"`
	KeepTasks         bool          `koanf:"keep_tasks"`
	// Secrets is the path of the file with what agents sign with, which nothing shows.
	Secrets           string `koanf:"secrets"`
	RequireSignatures bool   `koanf:"require_signatures"`
	WebhookTargets    string `koanf:"webhook_targets"`
}

// ACP are the settings of the ACP dialect.
type ACP struct {
	Deadline         time.Duration `koanf:"deadline"`
	DelegateDeadline time.Duration `koanf:"delegate_deadline"`
	EnvelopeBytes    int           `koanf:"envelope_bytes"`
	KeepResults      time.Duration `koanf:"keep_results"`
	KeepIDs          time.Duration `koanf:"keep_ids"`
	MailboxBytes     int           `koanf:"mailbox_bytes"`
	KeepTasks        bool          `koanf:"keep_tasks"`
}

// REST are the settings of the hub's own HTTP interface.
type REST struct {
	Deadline  time.Duration `koanf:"deadline"`
	BodyBytes int           `koanf:"body_bytes"`
	KeepTasks bool          `koanf:"keep_tasks"`
}

// MCP are the settings of the MCP endpoint.
type MCP struct {
	// Endpoint is the address that agents are told, where it is not that of the HTTP
	// listener.
	Endpoint    string        `koanf:"endpoint"`
	Deadline    time.Duration `koanf:"deadline"`
	CallTimeout time.Duration `koanf:"call_timeout"`
	BodyBytes   int           `koanf:"body_bytes"`
	Calls       int           `koanf:"calls"`
}

func defaults() map[string]any {
	all := map[string]any{
		"grpc_addr": "127.0.0.1:50051", "http_addr": "127.0.0.1:8080", "pi_addr": "127.0.0.1:3141", "pi_socket": "",
		"data_dir": "", "stdio": false, "insecure": false, "log_level": "info", "log_format": "auto", "ready_file": "",
		"hosts": []string{}, "origins": []string{}, "stop_timeout": "30s",
		"journal.sync": "interval", "journal.nats_url": "", "journal.name": "dragoman", "journal.age": "168h", "journal.lag": "200ms", "journal.bytes": 1 << 30,
		"usage.age": "9600h", "usage.bytes": 64 << 20, "budgets": "",
		"limits.memory": 0, "limits.hops": 8, "limits.queue_length": 64, "limits.retries": 2, "limits.cancel_grace": "5s", "limits.slot_grace": "5s", "limits.disconnect": "single",
		"limits.approval_timeout": "300s", "limits.question_timeout": "60s", "limits.questions": 1000, "limits.cause_memory": "30s", "limits.task_bytes": 64 << 20, "limits.history_bytes": 64 << 10,
		"limits.request_bytes": 16 << 20, "limits.max_deadline": "168h", "limits.threads": 4096,
		"limits.finished_tasks": 1024, "limits.finished_bytes": 64 << 20, "limits.unrecorded_bytes": 256 << 20,
		"limits.packs": 64, "limits.pack_tools": 128, "limits.pack_calls": 256, "limits.tool_timeout": "30s", "limits.max_tool_timeout": "300s",
		"limits.keep_notices": "10m", "limits.notice_bytes": 4 << 20,
		"grpc.connections": 4096, "grpc.ping_interval": "15s", "grpc.ping_timeout": "5s", "grpc.min_client_ping": "5s",
		"http.connections": 4096, "websocket.ping_interval": "30s", "websocket.ping_timeout": "10s", "websocket.write_timeout": "30s",
		"auth.tokens":          "",
		"coven.max_concurrent": 1, "coven.deadline": "600s", "coven.register_timeout": "30s", "coven.orphan_grace": "2s", "coven.keep_tasks": false,
		"coven.remember": "5m", "coven.tool_calls": 64, "coven.secrets": "",
		"parallax.task_timeout": "30s", "parallax.heartbeat_interval": "10s", "parallax.message_bytes": 1_000_000, "parallax.messages_per_second": 100,
		"parallax.keep_tasks": false, "parallax.secrets": "", "parallax.require_signatures": false, "parallax.webhook_targets": "public",
		"acp.deadline": "30s", "acp.delegate_deadline": "1h", "acp.envelope_bytes": 1_000_000, "acp.keep_results": "10m", "acp.keep_tasks": false,
		"acp.keep_ids": "300s", "acp.mailbox_bytes": 4 << 20,
		"rest.deadline": "300s", "rest.body_bytes": 1_000_000, "rest.keep_tasks": true,
		"mcp.endpoint": "", "mcp.deadline": "600s", "mcp.call_timeout": "1h", "mcp.body_bytes": 1_000_000, "mcp.calls": 64,
	}
	maps.Copy(all, piDefaults())
	return all
}

// AddFlags declares the flags of everything that starts a hub.
func AddFlags(fs *pflag.FlagSet) {
	fs.String("config", "", "YAML `file` with the settings")
	fs.String("grpc-addr", "127.0.0.1:50051", "gRPC `address`, for Coven and the gateway of Parallax; port 0 picks a free one, an empty text leaves it out, as for the others")
	fs.String("http-addr", "127.0.0.1:8080", "HTTP `address`, for Parallax, ACP, pi-server, REST and MCP")
	fs.String("pi-addr", "127.0.0.1:3141", "pi-server `address`")
	fs.String("pi-socket", "", "`path` of a Unix socket for pi-server, a JSON object a line")
	fs.String("data-dir", "", "`directory` of the journal; without one tasks are remembered in memory only")
	fs.String("nats-url", "", "`address` of an external NATS server with JetStream for the journal")
	fs.Bool("stdio", false, "speak pi-server on stdin and stdout as well")
	fs.Bool("insecure", false, "listen beyond this machine although nobody has to authenticate")
	fs.String("log-level", "info", "`level` of the log: debug, info, warn or error")
	fs.String("log-format", "auto", "`format` of the log: auto, human or json")
	fs.String("ready-file", "", "`file` to write the bound addresses into once all listen")
}

// Plain returns the settings as the file has them.
func (c Config) Plain() map[string]any {
	return plain(reflect.ValueOf(c)).(map[string]any)
}

func plain(v reflect.Value) any {
	switch x := v.Interface().(type) {
	case time.Duration:
		return x.String()
	case []string:
		return append([]string{}, x...)
	case Budgets:
		return append(Budgets{}, x...)
	}
	if v.Kind() != reflect.Struct {
		return v.Interface()
	}
	m := map[string]any{}
	for i := range v.NumField() {
		if name := v.Type().Field(i).Tag.Get("koanf"); name != noSetting {
			m[name] = plain(v.Field(i))
		}
	}
	return m
}

// Values are the values of all settings as text, by their keys.
func (c Config) Values() map[string]string {
	all := map[string]string{}
	eachLeaf("", c.Plain(), func(key string, value any) { all[key] = fmt.Sprint(value) })
	return all
}
