package command

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
)

// phase is a step in the life of a command, by the name of its event.
type phase string

// The phases of a command.
const (
	PhaseAccepted phase = "command_accepted"
	PhaseStarted  phase = "command_started"
	phaseFinished phase = "command_finished"
)

// entry is one thing that happened to a command.
type entry struct {
	at int64 // in milliseconds
	of *commandInfo
	phase
	response  // of phaseFinished, without data
	recovered bool
}

// history is what happened to the last commands, of a server with a journal.
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
func (j *Journal) note(k *tracked, p phase, at time.Time, r *response) {
	if j.engine.opts.Journal == nil {
		return
	}
	h := entry{at: at.UnixMilli(), of: &k.commandInfo, phase: p}
	if r != nil {
		h.response = *r
	}
	j.history.add(h)
}

// The bounds of what is told of the past.
const (
	historyLimit = 100 // entries, unless more or fewer are asked for
	recoveryMost = 100 // items of each list in what a start found
)

// History answers get_command_history with what happened to the last commands, newest
// first (facts, section 4.8). path is where the journal is, as the client may know it.
func (j *Journal) History(x *Execution, path string) Outcome {
	limit := historyLimit
	if n, ok := x.whole("limit"); ok {
		limit = int(n)
	}
	session, bySession := x.Text("sessionIdFilter")
	id, byID := x.Text("commandId")
	from, begins := x.whole("fromTimestamp")
	to, ends := x.whole("toTimestamp")
	entries, returned, truncated := []byte{'['}, 0, false
	told := func(h entry) bool {
		return h.of != nil && h.of.scope == x.client.Scope &&
			(!bySession || h.of.session == session) && (!byID || h.of.name == id) && (!begins || h.at >= from) && (!ends || h.at <= to)
	}
	ring := j.history.ring
	for i := range ring {
		h := ring[(j.history.next+2*len(ring)-1-i)%len(ring)]
		if !told(h) {
			continue
		}
		if truncated = returned == limit; truncated {
			break
		}
		if returned++; returned > 1 {
			entries = append(entries, ',')
		}
		entries = appendEntry(entries, h)
	}
	filters := map[string]any{}
	for _, name := range []string{"sessionIdFilter", "commandId", "fromTimestamp", "toTimestamp"} {
		if raw, ok := x.Fields.Get(name); ok {
			filters[name] = raw
		}
	}
	return Outcome{Data: wire.Encode(struct {
		journalState
		Filters   map[string]any  `json:"filters"`
		Entries   json.RawMessage `json:"entries"`
		Returned  int             `json:"returned"`
		Truncated bool            `json:"truncated"`
		Most      int             `json:"maxItemsReturned"`
		Allowed   int             `json:"maxItemsAllowed"`
	}{j.journalState(path), filters, append(entries, ']'), returned, truncated, limit, maxHistory})}
}

func appendEntry(dst []byte, e entry) []byte {
	dst = strconv.AppendInt(append(dst, `{"recordedAt":`...), e.at, 10)
	dst = wire.AppendString(append(dst, `,"phase":`...), string(e.phase))
	dst = append(append(dst, ','), e.of.identity...)
	dst = wire.AppendString(append(dst, `,"laneKey":`...), e.of.laneKey())
	dst = strconv.AppendUint(append(dst, `,"laneSequence":`...), e.of.number, 10)
	dst = wire.AppendString(append(dst, `,"fingerprint":`...), e.of.fingerprint.String())
	dst = strconv.AppendBool(append(dst, `,"explicitId":`...), e.of.explicit)
	if e.phase == phaseFinished {
		dst = appendOutcome(dst, e.response, true)
	}
	if e.recovered {
		dst = append(dst, `,"recovered":true`...)
	}
	if e.recovered && e.err == Interrupted {
		dst = wire.AppendString(append(dst, `,"recoveryReason":`...), InterruptedReason)
	}
	return append(dst, '}')
}

// laneKey is the name of the lane that the command belongs to, whether it waits there
// or overtakes.
func (a commandInfo) laneKey() string {
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
	Path        string `json:"journalPath"`
	Schema      int    `json:"schemaVersion"`
}

func (j *Journal) journalState(path string) journalState {
	st := journalState{Enabled: j.engine.opts.Journal != nil, State: "disabled", Path: path, Schema: RecordVersion}
	switch {
	case !st.Enabled:
	case j.recovery.failed != "":
		st.State, st.Error = "failed", j.recovery.failed
	case j.recovery.ready:
		st.Initialized, st.State = true, "ready"
	default:
		st.State = "pending"
	}
	return st
}

// recovery is what a start found in the journal.
type recovery struct {
	ready  bool
	failed string // why it could not be read

	scanned, malformed, unsupported int
	outcomes, cut                   []*tracked
	started                         map[*tracked]bool // of those that were cut
}

// Recovery is StartupRecovery (facts, section 4.8).
type Recovery struct {
	journalState
	Scanned           int            `json:"entriesScanned"`
	Malformed         int            `json:"malformedEntries"`
	Unsupported       int            `json:"unsupportedVersionEntries"`
	Outcomes          int            `json:"recoveredOutcomes"`
	OutcomeIDs        []string       `json:"recoveredOutcomeIds"`
	OutcomesTruncated bool           `json:"recoveredOutcomeIdsTruncated"`
	Failures          int            `json:"recoveredInFlightFailures"`
	InFlight          []RecoveredCut `json:"recoveredInFlight"`
	InFlightTruncated bool           `json:"recoveredInFlightTruncated"`
	Most              int            `json:"maxItemsReturned"`
}

// RecoveredCut is a command that was cut off by the end of the process before.
type RecoveredCut struct {
	ID     string `json:"commandId"`
	Type   string `json:"commandType"`
	Lane   string `json:"laneKey"`
	Last   phase  `json:"lastPhase"`
	Reason string `json:"reason"`
}

// Recovered tells a scope what the start found of its commands, with lists of them or
// without. path is where the journal is, as the scope may know it.
func (j *Journal) Recovered(scope, path string, lists bool) any {
	f := &j.recovery
	r := Recovery{
		journalState: j.journalState(path), Scanned: f.scanned, Malformed: f.malformed, Unsupported: f.unsupported,
		OutcomeIDs: []string{}, InFlight: []RecoveredCut{}, Most: recoveryMost,
	}
	other := func(k *tracked) bool { return k.scope != scope }
	outcomes, cut := slices.DeleteFunc(slices.Clone(f.outcomes), other), slices.DeleteFunc(slices.Clone(f.cut), other)
	r.Outcomes, r.Failures = len(outcomes), len(cut)
	most := 0
	if lists {
		most = recoveryMost
	}
	for _, k := range outcomes[:min(most, len(outcomes))] {
		r.OutcomeIDs = append(r.OutcomeIDs, k.name)
	}
	for _, k := range cut[:min(most, len(cut))] {
		last := PhaseAccepted
		if f.started[k] {
			last = PhaseStarted
		}
		r.InFlight = append(r.InFlight, RecoveredCut{k.name, k.kind, k.laneKey(), last, InterruptedReason})
	}
	r.OutcomesTruncated, r.InFlightTruncated = len(outcomes) > most, len(cut) > most
	return r
}

// JournalCounts are the numbers of the journal of commands.
type JournalCounts struct {
	Enabled, Ready                  bool
	Written, Unwritten              int64
	Scanned, Malformed, Unsupported int
	Outcomes, Cut                   int
}

// Counts returns the numbers of the journal of commands.
func (j *Journal) Counts() JournalCounts {
	f := &j.recovery
	c := JournalCounts{
		Enabled: j.engine.opts.Journal != nil, Ready: f.ready, Scanned: f.scanned, Malformed: f.malformed, Unsupported: f.unsupported,
		Outcomes: len(f.outcomes), Cut: len(f.cut),
	}
	c.Written, c.Unwritten = j.records()
	return c
}
