package pi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// metrics are what get_metrics tells, in the shape of the reference (facts, section
// 4.4). What this server does not have (locks, an authentication that takes time)
// is zero there, which is true.
type metrics struct {
	SessionCount           int              `json:"sessionCount"`
	ConnectionCount        int              `json:"connectionCount"`
	PendingConnectionCount int              `json:"pendingConnectionCount"`
	TotalCommandsExecuted  int64            `json:"totalCommandsExecuted"`
	CommandsRejected       map[string]int64 `json:"commandsRejected"`
	ZombieSessionsDetected int              `json:"zombieSessionsDetected"`
	ZombieSessionsCleaned  int64            `json:"zombieSessionsCleaned"`
	DoubleUnregisterErrors int              `json:"doubleUnregisterErrors"`
	RateLimitUsage         struct {
		GlobalCount int `json:"globalCount"`
		GlobalLimit int `json:"globalLimit"`
	} `json:"rateLimitUsage"`
	Stores             stores           `json:"stores"`
	CircuitBreakers    []circuitMetrics `json:"circuitBreakers"`
	BashCircuitBreaker bashMetrics      `json:"bashCircuitBreaker"`
	Metrics            struct {
		Counters map[string]int64 `json:"counters"`
		Gauges   map[string]int64 `json:"gauges"`
		// Histograms has none: nobody knows the shape that the reference gives them.
		Histograms   struct{}      `json:"histograms"`
		RecentEvents []recentEvent `json:"recentEvents"`
	} `json:"metrics"`
}

// stores are what a server remembers.
type stores struct {
	Replay struct {
		InFlightCount        int   `json:"inFlightCount"`
		OutcomeCount         int   `json:"outcomeCount"`
		IdempotencyCacheSize int   `json:"idempotencyCacheSize"`
		MaxInFlightCommands  int   `json:"maxInFlightCommands"`
		MaxCommandOutcomes   int   `json:"maxCommandOutcomes"`
		InFlightRejections   int64 `json:"inFlightRejections"`
	} `json:"replay"`
	Version struct {
		SessionCount int `json:"sessionCount"`
	} `json:"version"`
	Execution struct {
		LaneCount int `json:"laneCount"`
	} `json:"execution"`
	Lock struct {
		ActiveLocks         int `json:"activeLocks"`
		TimeoutCount        int `json:"timeoutCount"`
		WaitingCount        int `json:"waitingCount"`
		QueueFullRejections int `json:"queueFullRejections"`
	} `json:"lock"`
	ExtensionUI struct {
		PendingCount       int   `json:"pendingCount"`
		MaxPendingRequests int   `json:"maxPendingRequests"`
		RejectedCount      int64 `json:"rejectedCount"`
	} `json:"extensionUI"`
	SessionStore struct {
		MetadataResetCount int `json:"metadataResetCount"`
	} `json:"sessionStore"`
	Journal journalMetrics `json:"journal"`
}

// journalMetrics are those of a journal of commands.
type journalMetrics struct {
	Enabled             bool   `json:"enabled"`
	Initialized         bool   `json:"initialized"`
	JournalPath         string `json:"journalPath"`
	SchemaVersion       int    `json:"schemaVersion"`
	AppendFailurePolicy string `json:"appendFailurePolicy"`
	Redaction           struct {
		BeforePersist bool `json:"beforePersistHookEnabled"`
		BeforeExport  bool `json:"beforeExportHookEnabled"`
	} `json:"redaction"`
	EntriesWritten            int64 `json:"entriesWritten"`
	WriteErrors               int64 `json:"writeErrors"`
	EntriesScanned            int64 `json:"entriesScanned"`
	MalformedEntries          int64 `json:"malformedEntries"`
	UnsupportedVersionEntries int64 `json:"unsupportedVersionEntries"`
	RecoveredOutcomes         int64 `json:"recoveredOutcomes"`
	RecoveredInFlightFailures int64 `json:"recoveredInFlightFailures"`
	Retention                 struct {
		Enabled bool `json:"enabled"`
	} `json:"retention"`
	Compaction struct {
		Runs              int64 `json:"runs"`
		DroppedEntries    int64 `json:"droppedEntries"`
		LastEntriesBefore int64 `json:"lastEntriesBefore"`
		LastEntriesAfter  int64 `json:"lastEntriesAfter"`
		LastBytesBefore   int64 `json:"lastBytesBefore"`
		LastBytesAfter    int64 `json:"lastBytesAfter"`
	} `json:"compaction"`
}

// circuitMetrics are those of one agent's circuit; the reference's provider is the
// agent here.
type circuitMetrics struct {
	ProviderName    string `json:"providerName"`
	State           string `json:"state"`
	FailureCount    int    `json:"failureCount"`
	LastFailureTime *int64 `json:"lastFailureTime"`
	LastStateChange int64  `json:"lastStateChange"`
	LastAccessTime  int64  `json:"lastAccessTime"`
	TotalCalls      int64  `json:"totalCalls"`
	TotalRejected   int64  `json:"totalRejected"`
	TotalSlowCalls  int64  `json:"totalSlowCalls"`
	TotalSuccesses  int64  `json:"totalSuccesses"`
	TotalFailures   int64  `json:"totalFailures"`
	AvgLatencyMs    int64  `json:"avgLatencyMs"`
	HalfOpenCalls   int64  `json:"halfOpenCalls"`
}

// bashMetrics are those of the circuits of bash. Enabled says that bash is allowed.
type bashMetrics struct {
	Enabled            bool   `json:"enabled"`
	GlobalState        string `json:"globalState"`
	GlobalFailureCount int    `json:"globalFailureCount"`
	SessionCount       int    `json:"sessionCount"`
	OpenSessionCount   int    `json:"openSessionCount"`
	TotalCalls         int64  `json:"totalCalls"`
	TotalTimeouts      int64  `json:"totalTimeouts"`
	TotalRejected      int64  `json:"totalRejected"`
}

// rejectedAs is what the reference calls the rejections; the last four are ours.
var rejectedAs = map[rejection]string{
	beyondSessions: "sessionLimit", beyondSize: "messageSize", beyondRate: "rateLimit", beyondAll: "globalRateLimit",
	beyondConnections: "connectionLimit", beyondAnswers: "extensionUIResponseRateLimit",
	beyondPending: "pendingLimit", beyondInFlight: "inFlightLimit", breakerOpen: "circuitOpen",
}

// getMetrics tells the numbers of the server (section 21.3): of the whole of it, but
// for the rate, which is that of the client.
func getMetrics(s *Server, x *execution) outcome {
	m := metrics{
		SessionCount: len(s.sessions), ConnectionCount: s.sockets, TotalCommandsExecuted: s.executed,
		CommandsRejected: map[string]int64{}, ZombieSessionsDetected: s.zombies(), ZombieSessionsCleaned: s.expired,
		CircuitBreakers: s.agentMetrics(), BashCircuitBreaker: s.bashMetrics(),
	}
	for why, name := range rejectedAs {
		m.CommandsRejected[name] = s.rejected[why].Load()
	}
	m.RateLimitUsage.GlobalCount = s.rates.used(x.client.space)
	m.RateLimitUsage.GlobalLimit = max(0, s.opts.Rates.Client)

	m.Stores.Replay.InFlightCount = len(s.flying)
	m.Stores.Replay.OutcomeCount, m.Stores.Replay.IdempotencyCacheSize = s.memory.order.Len(), len(s.memory.keys)
	m.Stores.Replay.MaxCommandOutcomes = s.opts.MaxOutcomes
	m.Stores.Replay.MaxInFlightCommands = s.opts.MaxInFlight
	m.Stores.Replay.InFlightRejections = s.rejected[beyondInFlight].Load()
	m.Stores.Version.SessionCount = len(s.sessions)
	m.Stores.Execution.LaneCount = len(s.lanes)
	counters := s.hub.Counters()
	m.Stores.ExtensionUI.PendingCount = s.openDialogs()
	m.Stores.ExtensionUI.MaxPendingRequests, m.Stores.ExtensionUI.RejectedCount = s.hub.Limits().Questions, counters["refused.question"]
	m.Stores.Journal = s.journalMetrics(x.client)

	m.Metrics.Counters = map[string]int64{"pi_server_connections_total": int64(s.connected)}
	for name, n := range counters {
		if rest, ours := strings.CutPrefix(name, Name+"."); ours {
			m.Metrics.Counters["pi_server_"+strings.ReplaceAll(rest, ".", "_")] = n
		}
	}
	m.Metrics.Gauges = map[string]int64{"pi_server_connections_active": int64(len(s.clients))}
	m.Metrics.RecentEvents = append([]recentEvent{}, s.recent...)
	return outcome{data: wire.Encode(m)}
}

// held counts the sessions of a client that make no room for others.
func (s *Server) held(by space) int {
	n := 0
	for _, ss := range s.sessions {
		if ss.owner == by && (ss.busy() || len(ss.readers) > 0) {
			n++
		}
	}
	return n
}

// zombies counts the sessions that nobody seems to remember.
func (s *Server) zombies() int {
	n := 0
	for _, ss := range s.sessions {
		if ss.forgotten() {
			n++
		}
	}
	return n
}

// journalMetrics are those of the journal of commands, as c is told them.
func (s *Server) journalMetrics(c *connection) journalMetrics {
	f := s.found
	m := journalMetrics{
		Enabled: s.opts.Journal != nil, Initialized: f.ready, JournalPath: s.journalPath(c), SchemaVersion: recordVersion, AppendFailurePolicy: "best_effort",
		EntriesWritten: s.written, WriteErrors: s.unwritten, EntriesScanned: int64(f.scanned), MalformedEntries: int64(f.malformed),
		UnsupportedVersionEntries: int64(f.unsupported), RecoveredOutcomes: int64(len(f.outcomes)), RecoveredInFlightFailures: int64(len(f.cut)),
	}
	m.Retention.Enabled = m.Enabled // the journal lets go of what is too old or too much
	return m
}

// openDialogs counts the questions and approvals that wait for a person of ours.
func (s *Server) openDialogs() int {
	n := 0
	for _, ss := range s.sessions {
		n += len(ss.dialogs.open)
	}
	for _, a := range s.hub.Approvals(core.Principal{Operator: true}) {
		if s.runs[a.Task] != nil {
			n++
		}
	}
	return n
}

func (s *Server) agentMetrics() []circuitMetrics {
	list := []circuitMetrics{}
	for _, id := range slices.Sorted(maps.Keys(s.agents.of)) {
		c := s.agents.of[id]
		m := circuitMetrics{
			ProviderName: c.name, State: c.state(), FailureCount: c.recent(), LastAccessTime: c.lastAccess.UnixMilli(),
			TotalCalls: c.calls, TotalRejected: c.rejected, TotalSlowCalls: c.slowCalls, TotalSuccesses: c.successes, TotalFailures: c.failures,
			HalfOpenCalls: c.trials, LastStateChange: c.lastChange.UnixMilli(),
		}
		if !c.lastFailure.IsZero() {
			at := c.lastFailure.UnixMilli()
			m.LastFailureTime = &at
		}
		if n := c.successes + c.failures; n > 0 {
			m.AvgLatencyMs = (c.latency / time.Duration(n)).Milliseconds()
		}
		list = append(list, m)
	}
	return list
}

func (s *Server) bashMetrics() bashMetrics {
	m := bashMetrics{
		Enabled: s.opts.Bash, GlobalState: s.bash.state(), GlobalFailureCount: s.bash.recent(),
		TotalCalls: s.bash.calls, TotalTimeouts: s.bashTimeouts, TotalRejected: s.bash.rejected,
	}
	for _, ss := range s.sessions {
		if c := ss.circuit; c != nil {
			m.SessionCount++
			m.TotalRejected += c.rejected
			if c.isOpen() {
				m.OpenSessionCount++
			}
		}
	}
	return m
}

// healthCheck tells how near the limits are and what is out of order (section 21.2;
// facts, section 4.5).
func healthCheck(s *Server, x *execution) outcome {
	issues := []string{}
	nearly := func(what string, n, limit int) {
		if 10*n >= 9*limit {
			issues = append(issues, fmt.Sprintf("%s count at %d/%d (90%%+)", what, n, limit))
		}
	}
	nearly("Session", s.held(x.client.space), s.opts.MaxSessions)
	nearly("Connection", s.sockets, s.opts.MaxConnections)
	if n := s.zombies(); n > 0 {
		issues = append(issues, fmt.Sprintf("%d zombie sessions detected", n))
	}
	healthy := len(issues) == 0
	agents, b := s.agents.anyOpen(), s.bashMetrics()
	if agents {
		issues = append(issues, "One or more LLM provider circuits are open")
	}
	shells := b.GlobalState == "open" || b.OpenSessionCount > 0
	if shells {
		issues = append(issues, "Bash command circuit breaker is open")
	}
	return outcome{data: wire.Encode(map[string]any{
		"healthy": healthy, "issues": issues, "hasOpenCircuit": agents, "hasOpenBashCircuit": shells,
	})}
}
