package pi

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// getMetrics returns the numbers of the server, in the shape of the reference (section 21.3;
// facts, section 4.4). What this server does not have, such as locks, is zero. The rate is
// that of the client.
func getMetrics(s *Server, x *request) command.Outcome {
	type object = map[string]any
	counts, limits, counters := s.engine.Counts(), s.engine.Options(), s.hub.Counters()
	ours := map[string]int64{"pi_server_connections_total": int64(s.connected)}
	for name, n := range counters {
		if rest, ok := strings.CutPrefix(name, Name+"."); ok {
			ours["pi_server_"+strings.ReplaceAll(rest, ".", "_")] = n
		}
	}
	return command.Outcome{Data: strictjson.Encode(object{
		"sessionCount":           len(s.sessions),
		"connectionCount":        s.sockets,
		"pendingConnectionCount": 0,
		"totalCommandsExecuted":  counts.Executed,
		"commandsRejected":       s.engine.Rejections(),
		"zombieSessionsDetected": s.zombies(),
		"zombieSessionsCleaned":  s.expired,
		"doubleUnregisterErrors": 0,
		"rateLimitUsage":         object{"globalCount": s.engine.RateOf(&x.client.Client), "globalLimit": max(0, limits.Rates.Client)},
		"circuitBreakers":        s.circuitsFor(x.client),
		"bashCircuitBreaker":     s.bashMetrics(),
		"stores": object{
			"replay": object{
				"inFlightCount": counts.InFlight, "maxInFlightCommands": limits.MaxInFlight, "inFlightRejections": counts.Overflown,
				"outcomeCount": counts.Outcomes, "maxCommandOutcomes": limits.MaxOutcomes, "idempotencyCacheSize": counts.Keys,
			},
			"version":      object{"sessionCount": len(s.sessions)},
			"execution":    object{"laneCount": counts.Lanes},
			"lock":         object{"activeLocks": 0, "timeoutCount": 0, "waitingCount": 0, "queueFullRejections": 0},
			"extensionUI":  object{"pendingCount": s.openDialogs(), "maxPendingRequests": s.hub.Limits().Questions, "rejectedCount": counters["refused.question"]},
			"sessionStore": object{"metadataResetCount": 0},
			"journal":      s.journalMetrics(x.client),
		},
		"metrics": object{
			"counters":     ours,
			"gauges":       object{"pi_server_connections_active": len(s.clients)},
			"histograms":   object{}, // the shape that the reference gives them is not known
			"recentEvents": append([]recentEvent{}, s.recent...),
		},
	})}
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
func (s *Server) journalMetrics(c *connection) map[string]any {
	n := s.engine.Journal().Counts()
	return map[string]any{
		"enabled": n.Enabled, "initialized": n.Ready, "journalPath": s.journalPath(c), "schemaVersion": command.RecordVersion, "appendFailurePolicy": "best_effort",
		"redaction":      map[string]bool{"beforePersistHookEnabled": false, "beforeExportHookEnabled": false},
		"entriesWritten": n.Written, "writeErrors": n.Unwritten, "entriesScanned": n.Scanned, "malformedEntries": n.Malformed,
		"unsupportedVersionEntries": n.Unsupported, "recoveredOutcomes": n.Outcomes, "recoveredInFlightFailures": n.Interrupted,
		"retention": map[string]bool{"enabled": n.Enabled}, // a journal is bounded in age and bytes
		"compaction": map[string]int{
			"runs": 0, "droppedEntries": 0, "lastEntriesBefore": 0, "lastEntriesAfter": 0, "lastBytesBefore": 0, "lastBytesAfter": 0,
		},
	}
}

// openDialogs counts the questions and approvals that wait for the user of a client.
func (s *Server) openDialogs() int {
	n := 0
	for _, ss := range s.sessions {
		n += len(ss.dialogs.open)
	}
	for _, steps := range s.runs {
		if t := steps[0].task; s.hub.MayDecide(s.root.Identity().Principal, t) {
			n += len(t.Approvals())
		}
	}
	return n
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
	agents, b := slices.ContainsFunc(s.circuitsFor(x.client), func(r command.CircuitReport) bool { return r.State == "open" }), s.bashMetrics()
	if agents {
		issues = append(issues, "One or more LLM provider circuits are open")
	}
	shells := b.GlobalState == "open" || b.OpenSessionCount > 0
	if shells {
		issues = append(issues, "Bash command circuit breaker is open")
	}
	return command.Outcome{Data: strictjson.Encode(map[string]any{
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
