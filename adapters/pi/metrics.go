package pi

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
)

// metrics is the data of get_metrics, in the shape of the reference (facts, section 4.4).
// What this server does not have, such as locks, is zero.
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
	Stores             stores                  `json:"stores"`
	CircuitBreakers    []command.CircuitReport `json:"circuitBreakers"`
	BashCircuitBreaker bashMetrics             `json:"bashCircuitBreaker"`
	Metrics            struct {
		Counters map[string]int64 `json:"counters"`
		Gauges   map[string]int64 `json:"gauges"`
		// Histograms is empty: the shape that the reference gives them is not known.
		Histograms   struct{}      `json:"histograms"`
		RecentEvents []recentEvent `json:"recentEvents"`
	} `json:"metrics"`
}

// stores are the numbers of what a server keeps in memory.
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

// journalMetrics are the numbers of the journal of commands.
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

// bashMetrics are the numbers of the circuits of bash. Enabled says that bash is allowed.
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

// getMetrics returns the numbers of the server (section 21.3). The rate is that of the
// client.
func getMetrics(s *Server, x *request) command.Outcome {
	counts, limits := s.engine.Counts(), s.engine.Options()
	m := metrics{
		SessionCount: len(s.sessions), ConnectionCount: s.sockets, TotalCommandsExecuted: counts.Executed,
		CommandsRejected: s.engine.Rejections(), ZombieSessionsDetected: s.zombies(), ZombieSessionsCleaned: s.expired,
		CircuitBreakers: s.circuits.Report(), BashCircuitBreaker: s.bashMetrics(),
	}
	m.RateLimitUsage.GlobalCount = s.engine.RateOf(&x.client.Client)
	m.RateLimitUsage.GlobalLimit = max(0, limits.Rates.Client)

	m.Stores.Replay.InFlightCount = counts.InFlight
	m.Stores.Replay.OutcomeCount, m.Stores.Replay.IdempotencyCacheSize = counts.Outcomes, counts.Keys
	m.Stores.Replay.MaxCommandOutcomes = limits.MaxOutcomes
	m.Stores.Replay.MaxInFlightCommands = limits.MaxInFlight
	m.Stores.Replay.InFlightRejections = int64(counts.Overflown)
	m.Stores.Version.SessionCount = len(s.sessions)
	m.Stores.Execution.LaneCount = counts.Lanes
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
	return command.Outcome{Data: wire.Encode(m)}
}

// sessionsInUse counts the sessions of a client that are not parked for others.
func (s *Server) sessionsInUse(by command.Namespace) int {
	n := 0
	for _, ss := range s.sessions {
		if ss.owner == by && (ss.busy() || len(ss.subscribers) > 0) {
			n++
		}
	}
	return n
}

// zombieAfter is how long after its last command an idle session counts as a zombie
// (facts, section 4.5).
const zombieAfter = 5 * time.Minute

// zombies counts the idle sessions that have had no command for a while.
func (s *Server) zombies() int {
	n := 0
	for _, ss := range s.sessions {
		if !ss.busy() && time.Since(ss.lastUsed) > zombieAfter {
			n++
		}
	}
	return n
}

// journalMetrics returns the numbers of the journal that c may know.
func (s *Server) journalMetrics(c *connection) journalMetrics {
	n := s.engine.Journal().Counts()
	m := journalMetrics{
		Enabled: n.Enabled, Initialized: n.Ready, JournalPath: s.journalPath(c), SchemaVersion: command.RecordVersion, AppendFailurePolicy: "best_effort",
		EntriesWritten: n.Written, WriteErrors: n.Unwritten, EntriesScanned: int64(n.Scanned), MalformedEntries: int64(n.Malformed),
		UnsupportedVersionEntries: int64(n.Unsupported), RecoveredOutcomes: int64(n.Outcomes), RecoveredInFlightFailures: int64(n.Interrupted),
	}
	m.Retention.Enabled = m.Enabled // a journal is bounded in age and bytes
	return m
}

// openDialogs counts the questions and approvals that wait for the user of a client.
func (s *Server) openDialogs() int {
	n := 0
	for _, ss := range s.sessions {
		n += len(ss.dialogs.open)
	}
	for _, a := range s.hub.Approvals(s.root.Identity().Principal) {
		if s.runs[a.Task] != nil {
			n++
		}
	}
	return n
}

func (s *Server) bashMetrics() bashMetrics {
	all := s.bash.Report()
	m := bashMetrics{
		Enabled: s.opts.Bash, GlobalState: all.State, GlobalFailureCount: all.FailureCount,
		TotalCalls: all.TotalCalls, TotalTimeouts: s.bashTimeouts, TotalRejected: all.TotalRejected,
	}
	for _, ss := range s.sessions {
		if c := ss.circuit; c != nil {
			m.SessionCount++
			own := c.Report()
			m.TotalRejected += own.TotalRejected
			if own.State == "open" {
				m.OpenSessionCount++
			}
		}
	}
	return m
}

// healthCheck reports limits that are nearly reached, zombie sessions and open circuits
// (section 21.2; facts, section 4.5).
func healthCheck(s *Server, x *request) command.Outcome {
	issues := []string{}
	nearly := func(what string, n, limit int) {
		if 10*n >= 9*limit {
			issues = append(issues, fmt.Sprintf("%s count at %d/%d (90%%+)", what, n, limit))
		}
	}
	nearly("Session", s.sessionsInUse(x.client.Namespace), s.opts.MaxSessions)
	nearly("Connection", s.sockets, s.opts.MaxConnections)
	if n := s.zombies(); n > 0 {
		issues = append(issues, fmt.Sprintf("%d zombie sessions detected", n))
	}
	healthy := len(issues) == 0
	agents, b := slices.ContainsFunc(s.circuits.Report(), func(r command.CircuitReport) bool { return r.State == "open" }), s.bashMetrics()
	if agents {
		issues = append(issues, "One or more LLM provider circuits are open")
	}
	shells := b.GlobalState == "open" || b.OpenSessionCount > 0
	if shells {
		issues = append(issues, "Bash command circuit breaker is open")
	}
	return command.Outcome{Data: wire.Encode(map[string]any{
		"healthy": healthy, "issues": issues, "hasOpenCircuit": agents, "hasOpenBashCircuit": shells,
	})}
}

// recentEvent is an event that the server has sent, in the shape of the reference (facts,
// section 4.4).
type recentEvent struct {
	Name      string            `json:"name"`
	Type      string            `json:"type"`
	Tags      map[string]string `json:"tags"`
	Timestamp int64             `json:"timestamp"` // in milliseconds
}

// maxRecent is the number of recent events in get_metrics, the latest last.
const maxRecent = 100

// recordEvent notes that an event of the server was sent. Its subject is not kept, since
// every client may call get_metrics.
func (s *Server) recordEvent(event string) {
	if len(s.recent) == maxRecent {
		s.recent = slices.Delete(s.recent, 0, 1)
	}
	s.recent = append(s.recent, recentEvent{"pi_server_event_" + event, "event", map[string]string{"event": event}, time.Now().UnixMilli()})
}
