package pi

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
)

// phase is a step in the life of a command, by the name of its event.
type phase string

const (
	phaseAccepted phase = "command_accepted"
	phaseStarted  phase = "command_started"
	phaseFinished phase = "command_finished"
)

// entry is one thing that happened to a command.
type entry struct {
	at int64 // in milliseconds
	of *about
	phase
	response  // of phaseFinished, without data
	recovered bool
}

// history is what happened to the last commands, of a server with a journal.
// Server.mu guards it.
type history struct {
	ring  []entry // in turn, once there are as many as it may have
	next  int
	bytes int
}

// The bounds of a history. What is older is in the journal as long as that keeps it,
// and is not told.
const (
	historyEntries = 6000
	historyBytes   = 16 << 20
	entryBytes     = 256
)

func (e entry) size() int { return entryBytes + len(e.of.identity) + len(e.err) }

// add adds what happened, in the place of the oldest where there is no room.
func (h *history) add(e entry) {
	e.data = nil
	h.bytes += e.size()
	if len(h.ring) < historyEntries {
		h.ring = append(h.ring, e)
	} else {
		if old := h.ring[h.next]; old.of != nil {
			h.bytes -= old.size()
		}
		h.ring[h.next] = e
		h.next = (h.next + 1) % historyEntries
	}
	for i := 0; h.bytes > historyBytes && i < len(h.ring); i++ {
		if old := &h.ring[(h.next+i)%len(h.ring)]; old.of != nil {
			h.bytes -= old.size()
			*old = entry{}
		}
	}
}

// note keeps what happened to a command for get_command_history.
func (s *Server) note(k *known, p phase, at time.Time, r *response) {
	if s.opts.Journal == nil {
		return
	}
	e := entry{at: at.UnixMilli(), of: &k.about, phase: p}
	if r != nil {
		e.response = *r
	}
	s.past.add(e)
}

// The bounds of what is told of the past.
const (
	historyLimit = 100 // entries, unless more or fewer are asked for
	recoveryMost = 100 // items of each list in what a start found
)

// getHistory tells what happened to the last commands, newest first (facts, section
// 4.8).
func getHistory(s *Server, x *execution) outcome {
	limit := historyLimit
	if n, ok := x.whole("limit"); ok {
		limit = int(n)
	}
	session, bySession := x.text("sessionIdFilter")
	id, byID := x.text("commandId")
	from, begins := x.whole("fromTimestamp")
	to, ends := x.whole("toTimestamp")
	entries, returned, truncated := []byte{'['}, 0, false
	told := func(e entry) bool {
		return e.of != nil && e.of.scope == x.client.scope &&
			(!bySession || e.of.session == session) && (!byID || e.of.name == id) && (!begins || e.at >= from) && (!ends || e.at <= to)
	}
	ring := s.past.ring
	for i := range ring {
		e := ring[(s.past.next+2*len(ring)-1-i)%len(ring)]
		if !told(e) {
			continue
		}
		if truncated = returned == limit; truncated {
			break
		}
		if returned++; returned > 1 {
			entries = append(entries, ',')
		}
		entries = appendEntry(entries, e)
	}
	filters := map[string]any{}
	for _, name := range []string{"sessionIdFilter", "commandId", "fromTimestamp", "toTimestamp"} {
		if raw, ok := x.fields.get(name); ok {
			filters[name] = raw
		}
	}
	return outcome{data: wire.Encode(struct {
		journalState
		Filters   map[string]any  `json:"filters"`
		Entries   json.RawMessage `json:"entries"`
		Returned  int             `json:"returned"`
		Truncated bool            `json:"truncated"`
		Most      int             `json:"maxItemsReturned"`
		Allowed   int             `json:"maxItemsAllowed"`
	}{s.journalState(x.client), filters, append(entries, ']'), returned, truncated, limit, maxHistory})}
}

func appendEntry(dst []byte, e entry) []byte {
	dst = strconv.AppendInt(append(dst, `{"recordedAt":`...), e.at, 10)
	dst = wire.AppendString(append(dst, `,"phase":`...), string(e.phase))
	dst = append(append(dst, ','), e.of.identity...)
	dst = wire.AppendString(append(dst, `,"laneKey":`...), e.of.laneKey())
	dst = strconv.AppendUint(append(dst, `,"laneSequence":`...), e.of.number, 10)
	dst = wire.AppendString(append(dst, `,"fingerprint":`...), e.of.print.String())
	dst = strconv.AppendBool(append(dst, `,"explicitId":`...), e.of.explicit)
	if e.phase == phaseFinished {
		dst = appendOutcome(dst, e.response, true)
	}
	if e.recovered {
		dst = append(dst, `,"recovered":true`...)
	}
	if e.recovered && e.err == interrupted {
		dst = wire.AppendString(append(dst, `,"recoveryReason":`...), interruptedReason)
	}
	return append(dst, '}')
}

// laneKey is the name of the lane that the command belongs to, whether it waits there
// or overtakes.
func (a about) laneKey() string {
	if a.lane == serverLane {
		return "server"
	}
	return "session:" + a.lane
}

// journalState says whether commands are kept in a journal.
type journalState struct {
	Enabled     bool   `json:"enabled"`
	Initialized bool   `json:"initialized"`
	State       string `json:"initState"`
	Error       string `json:"initializationError,omitempty"`
	// Path is told to operators alone: see [Server.journalPath].
	Path   string `json:"journalPath"`
	Schema int    `json:"schemaVersion"`
}

// redacted stands for a path that a client is not told.
const redacted = "[redacted]"

// journalPath is where the journal is, as c may know it. c is nil where everybody is told.
func (s *Server) journalPath(c *connection) string {
	if c == nil || !c.operates() {
		return redacted
	}
	return s.opts.JournalPath
}

func (s *Server) journalState(c *connection) journalState {
	j := journalState{Enabled: s.opts.Journal != nil, State: "disabled", Path: s.journalPath(c), Schema: recordVersion}
	switch {
	case !j.Enabled:
	case s.found.failed != "":
		j.State, j.Error = "failed", s.found.failed
	case s.found.ready:
		j.Initialized, j.State = true, "ready"
	default:
		j.State = "pending"
	}
	return j
}

// found is what a start found in the journal. Server.mu guards it.
type found struct {
	ready  bool
	failed string // why it could not be read

	scanned, malformed, unsupported int
	outcomes, cut                   []*known
	started                         map[*known]bool // of those that were cut
}

// recovery is StartupRecovery (facts, section 4.8).
type recovery struct {
	journalState
	Scanned           int            `json:"entriesScanned"`
	Malformed         int            `json:"malformedEntries"`
	Unsupported       int            `json:"unsupportedVersionEntries"`
	Outcomes          int            `json:"recoveredOutcomes"`
	OutcomeIDs        []string       `json:"recoveredOutcomeIds"`
	OutcomesTruncated bool           `json:"recoveredOutcomeIdsTruncated"`
	Failures          int            `json:"recoveredInFlightFailures"`
	InFlight          []recoveredCut `json:"recoveredInFlight"`
	InFlightTruncated bool           `json:"recoveredInFlightTruncated"`
	Most              int            `json:"maxItemsReturned"`
}

type recoveredCut struct {
	ID     string `json:"commandId"`
	Type   string `json:"commandType"`
	Lane   string `json:"laneKey"`
	Last   phase  `json:"lastPhase"`
	Reason string `json:"reason"`
}

// recovered tells a scope what the start found of its commands. c is the client that asked
// for it; without one, what everybody is told, it has neither lists nor paths.
func (s *Server) recovered(scope string, c *connection) recovery {
	f := &s.found
	r := recovery{
		journalState: s.journalState(c), Scanned: f.scanned, Malformed: f.malformed, Unsupported: f.unsupported,
		OutcomeIDs: []string{}, InFlight: []recoveredCut{}, Most: recoveryMost,
	}
	other := func(k *known) bool { return k.scope != scope }
	outcomes, cut := slices.DeleteFunc(slices.Clone(f.outcomes), other), slices.DeleteFunc(slices.Clone(f.cut), other)
	r.Outcomes, r.Failures = len(outcomes), len(cut)
	most := 0
	if c != nil {
		most = recoveryMost
	}
	for _, k := range outcomes[:min(most, len(outcomes))] {
		r.OutcomeIDs = append(r.OutcomeIDs, k.name)
	}
	for _, k := range cut[:min(most, len(cut))] {
		last := phaseAccepted
		if f.started[k] {
			last = phaseStarted
		}
		r.InFlight = append(r.InFlight, recoveredCut{k.name, k.kind, k.laneKey(), last, interruptedReason})
	}
	r.OutcomesTruncated, r.InFlightTruncated = len(outcomes) > most, len(cut) > most
	return r
}

func getRecovery(s *Server, x *execution) outcome {
	return outcome{data: wire.Encode(s.recovered(x.client.scope, x.client))}
}
