package command

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// phase is a step in the life of a command, by the name of its event.
type phase string

// The phases of a command.
const (
	PhaseAccepted phase = "command_accepted"
	PhaseStarted  phase = "command_started"
	phaseFinished phase = "command_finished"
)

// entry is one phase of a command.
type entry struct {
	at int64 // in milliseconds
	of *commandInfo
	phase
	response  // of phaseFinished, without data
	recovered bool
}

// history has the latest phases of commands, of a server with a journal.
type history struct {
	entries fifo.Queue[entry]
	bytes   int
}

// The bounds of a history. Older entries may be in the journal, and are not shown.
const (
	historyEntries = 6000
	historyBytes   = 16 << 20
	entryBytes     = 256
)

func (e entry) size() int { return entryBytes + len(e.of.identity) + len(e.err) }

// add adds an entry and drops the oldest beyond the bounds.
func (h *history) add(e entry) {
	e.data = nil
	h.entries.Push(e)
	h.bytes += e.size()
	for h.entries.Len() > historyEntries || h.bytes > historyBytes {
		oldest, _ := h.entries.Pop()
		h.bytes -= oldest.size()
	}
}

// note adds a phase of a command to the history.
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

// The bounds of lists in answers.
const (
	defaultHistory = 100 // entries, unless the command has a limit
	maxRecovery    = 100 // items of each list in a Recovery
)

// History answers get_command_history, newest entries first (facts, section 4.8). path is
// where the journal is, as far as the client may know.
func (j *Journal) History(x *Execution, path string) Outcome {
	limit := defaultHistory
	if n, ok := x.whole("limit"); ok {
		limit = int(n)
	}
	session, bySession := x.Text("sessionIdFilter")
	id, byID := x.Text("commandId")
	from, begins := x.whole("fromTimestamp")
	to, ends := x.whole("toTimestamp")
	matches := func(h entry) bool {
		return h.of.scope == x.client.Scope &&
			(!bySession || h.of.session == session) && (!byID || h.of.name == id) && (!begins || h.at >= from) && (!ends || h.at <= to)
	}
	entries, truncated := []json.RawMessage{}, false
	for _, h := range slices.Backward(j.history.entries.Items()) {
		if !matches(h) {
			continue
		}
		if truncated = len(entries) == limit; truncated {
			break
		}
		entries = append(entries, appendEntry(nil, h))
	}
	filters := map[string]any{}
	for _, name := range []string{"sessionIdFilter", "commandId", "fromTimestamp", "toTimestamp"} {
		if v := x.object.Get(name); v.Exists() {
			filters[name] = v.Raw()
		}
	}
	return Outcome{Data: strictjson.Encode(struct {
		journalState
		Filters   map[string]any    `json:"filters"`
		Entries   []json.RawMessage `json:"entries"`
		Returned  int               `json:"returned"`
		Truncated bool              `json:"truncated"`
		Most      int               `json:"maxItemsReturned"`
		Allowed   int               `json:"maxItemsAllowed"`
	}{j.journalState(path), filters, entries, len(entries), truncated, limit, maxHistory})}
}

func appendEntry(dst []byte, e entry) []byte {
	w := strictjson.Writer{B: append(dst, '{')}
	w.Number("recordedAt", e.at)
	w.Text("phase", string(e.phase))
	w.B = append(append(w.B, ','), e.of.identity...)
	w.Text("laneKey", e.of.laneKey())
	w.Count("laneSequence", e.of.number)
	w.Text("fingerprint", e.of.fingerprint.String())
	w.Bool("explicitId", e.of.explicit)
	if e.phase == phaseFinished {
		w.B = appendOutcome(w.B, e.response, true)
	}
	w.Flag("recovered", e.recovered)
	if e.recovered && e.err == Interrupted {
		w.Text("recoveryReason", InterruptedReason)
	}
	return append(w.B, '}')
}

// laneKey returns the name of the lane that the command belongs to, even if it overtook.
func (a commandInfo) laneKey() string {
	if a.lane == serverLane {
		return "server"
	}
	return "session:" + a.lane
}

// journalState is the state of the journal in answers.
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

// recovery is what Recover found in the journal.
type recovery struct {
	ready  bool
	failed string // why the journal could not be read

	scanned, malformed, unsupported int
	outcomes, interrupted           []*tracked
	started                         map[*tracked]bool // of the interrupted
}

// Recovery is StartupRecovery (facts, section 4.8).
type Recovery struct {
	journalState
	Scanned           int                  `json:"entriesScanned"`
	Malformed         int                  `json:"malformedEntries"`
	Unsupported       int                  `json:"unsupportedVersionEntries"`
	Outcomes          int                  `json:"recoveredOutcomes"`
	OutcomeIDs        []string             `json:"recoveredOutcomeIds"`
	OutcomesTruncated bool                 `json:"recoveredOutcomeIdsTruncated"`
	Failures          int                  `json:"recoveredInFlightFailures"`
	InFlight          []InterruptedCommand `json:"recoveredInFlight"`
	InFlightTruncated bool                 `json:"recoveredInFlightTruncated"`
	Most              int                  `json:"maxItemsReturned"`
}

// InterruptedCommand is a command that the end of the process before interrupted.
type InterruptedCommand struct {
	ID     string `json:"commandId"`
	Type   string `json:"commandType"`
	Lane   string `json:"laneKey"`
	Last   phase  `json:"lastPhase"`
	Reason string `json:"reason"`
}

// Recovered returns what Recover found of the commands of a scope, with or without lists of
// them. path is where the journal is, as far as the scope may know.
func (j *Journal) Recovered(scope, path string, lists bool) any {
	f := &j.recovery
	r := Recovery{
		journalState: j.journalState(path), Scanned: f.scanned, Malformed: f.malformed, Unsupported: f.unsupported,
		OutcomeIDs: []string{}, InFlight: []InterruptedCommand{}, Most: maxRecovery,
	}
	other := func(k *tracked) bool { return k.scope != scope }
	outcomes, interrupted := slices.DeleteFunc(slices.Clone(f.outcomes), other), slices.DeleteFunc(slices.Clone(f.interrupted), other)
	r.Outcomes, r.Failures = len(outcomes), len(interrupted)
	most := 0
	if lists {
		most = maxRecovery
	}
	for _, k := range outcomes[:min(most, len(outcomes))] {
		r.OutcomeIDs = append(r.OutcomeIDs, k.name)
	}
	for _, k := range interrupted[:min(most, len(interrupted))] {
		last := PhaseAccepted
		if f.started[k] {
			last = PhaseStarted
		}
		r.InFlight = append(r.InFlight, InterruptedCommand{k.name, k.kind, k.laneKey(), last, InterruptedReason})
	}
	r.OutcomesTruncated, r.InFlightTruncated = len(outcomes) > most, len(interrupted) > most
	return r
}

// JournalCounts are the numbers of the journal of commands.
type JournalCounts struct {
	Enabled, Ready                  bool
	Written, Unwritten              int64
	Scanned, Malformed, Unsupported int
	Outcomes, Interrupted           int
}

// Counts returns the numbers of the journal of commands.
func (j *Journal) Counts() JournalCounts {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := &j.recovery
	return JournalCounts{
		Enabled: j.engine.opts.Journal != nil, Ready: r.ready, Written: j.written, Unwritten: j.unwritten,
		Scanned: r.scanned, Malformed: r.malformed, Unsupported: r.unsupported, Outcomes: len(r.outcomes), Interrupted: len(r.interrupted),
	}
}
