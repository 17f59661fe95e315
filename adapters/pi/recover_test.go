package pi_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// newRecovered returns a server that recovers from the log.
func newRecovered(t *testing.T, log core.RecordLog) (*hub.Hub, *pi.Server) {
	t.Helper()
	h, s := newServer(t, pi.Options{Commands: command.Options{Journal: log}})
	if err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h, s
}

// copyLog returns a copy of the log, like one left by a killed process.
func copyLog(t *testing.T, log core.RecordLog) core.RecordLog {
	t.Helper()
	after := &coretest.MemoryLog{}
	err := log.Replay(t.Context(), func(_ time.Time, r []byte) bool { return after.Append(t.Context(), r) == nil })
	if err != nil {
		t.Fatal(err)
	}
	return after
}

var ann = pi.ConnOptions{Principal: core.Principal{ID: "ann", Authenticated: true}}

func TestAnOutcomeIsReplayedAfterARestart(t *testing.T) {
	for name, tt := range map[string]struct {
		options  pi.ConnOptions
		identity string
		want     bool
	}{
		"an id and a key, on an open hub":      {pi.ConnOptions{}, `"id":"1","idempotencyKey":"k",`, true},
		"an id alone, on an open hub":          {pi.ConnOptions{}, `"id":"1",`, false},
		"an id of a principal":                 {ann, `"id":"1",`, true},
		"a key of a principal":                 {ann, `"idempotencyKey":"k",`, true},
		"an id and a key, both of a principal": {ann, `"id":"1","idempotencyKey":"k",`, true},
	} {
		t.Run(name, func(t *testing.T) {
			log := &coretest.MemoryLog{}
			h, s := newRecovered(t, log)
			joinAgent(t, h, core.Card{ID: "a"}, echoAgent)
			prompt := `{` + tt.identity + `"type":"prompt","sessionId":"s","message":"x"}`
			c := dial(t, s, tt.options)
			c.open("s", "a")
			c.send(prompt)
			first := c.until(`"response"`, `"prompt"`)

			_, s = newRecovered(t, copyLog(t, log))
			c = dial(t, s, tt.options)
			c.send(prompt)
			again := c.until(`"response"`, `"prompt"`)
			if got := has(again, `"replayed":true`); got != tt.want {
				t.Fatalf("got replayed %v, want %v: %s", got, tt.want, again.Raw)
			}
			if n := c.count("command_started"); (n == 0) != tt.want {
				t.Errorf("got %d commands started, want none by a replay", n)
			}
			if tt.want && (!first.Success || !again.Success || *again.SessionVersion != *first.SessionVersion) {
				t.Errorf("got %s, want %s", again.Raw, first.Raw)
			}
		})
	}
}

func TestAnInterruptedCommandIsReplayedAsFailed(t *testing.T) {
	log := &coretest.MemoryLog{}
	h, s := newRecovered(t, log)
	joinAgent(t, h, core.Card{ID: "mute"}, func(*testAgent, hub.Batch) {})
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "mute")
	const prompt = `{"id":"p","idempotencyKey":"k","type":"prompt","sessionId":"s","message":"x"}`
	c.send(prompt)
	c.until("command_started", `"p"`)
	c.send(`{"id":"q","idempotencyKey":"l","type":"set_session_name","sessionId":"s","name":"x"}`)
	c.until("command_accepted", `"q"`)
	s.Parts().Engine.Journal().Flush()

	after := copyLog(t, log)
	for life := range 2 {
		_, s = newRecovered(t, after)
		c = dial(t, s, pi.ConnOptions{})
		c.send(prompt)
		if f := c.until(`"response"`, `"id":"p"`); f.Error != command.Interrupted || !has(f, `"replayed":true`) {
			t.Errorf("process %d: got %s, want a replay of the failure", life, f.Raw)
		}
		var recovery command.Recovery
		if err := json.Unmarshal(c.ok(`{"type":"get_startup_recovery"}`).Data, &recovery); err != nil {
			t.Fatal(err)
		}
		summary := c.until("startup_recovery_summary")
		if has(summary, `"p"`) || has(summary, `"q"`) {
			t.Errorf("got %s, want no ids in an event for all clients", summary.Raw)
		}
		want := []command.InterruptedCommand{
			{ID: "p", Type: "prompt", Lane: "session:s", Last: command.PhaseStarted, Reason: command.InterruptedReason}, {ID: "q", Type: "set_session_name", Lane: "session:s", Last: command.PhaseAccepted, Reason: command.InterruptedReason},
		}
		if life > 0 {
			want = []command.InterruptedCommand{} // they failed in the process before
		}
		if !slices.Equal(recovery.InFlight, want) || recovery.Failures != len(want) || recovery.State != "ready" || !recovery.Initialized {
			t.Errorf("process %d: got %+v, want %+v interrupted", life, recovery, want)
		}
		s.Parts().Engine.Journal().Flush()
	}
}

func TestARestartReportsToEveryPrincipalItsOwnCommandsOnly(t *testing.T) {
	log := &coretest.MemoryLog{}
	_, s := newRecovered(t, log)
	dial(t, s, ann).ok(`{"id":"secret","type":"create_session","sessionId":"s"}`)
	_, s = newRecovered(t, copyLog(t, log))
	for name, want := range map[string]int{"ann": 1, "bob": 0} {
		c := dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: name, Authenticated: true}})
		if f := c.ok(`{"type":"get_startup_recovery"}`); strings.Count(string(f.Data), "secret") != want {
			t.Errorf("%s: got %s, want the id %d times", name, f.Data, want)
		}
		if f := c.ok(`{"type":"get_command_history","commandId":"secret"}`); strings.Count(string(f.Data), "recordedAt") != 3*want {
			t.Errorf("%s: got %s, want %d entries", name, f.Data, 3*want)
		}
	}
}

// valve is a log whose writes block until they are released, with an error or nil.
type valve struct {
	core.RecordLog
	writes chan []string // the written phases
	let    chan error
}

func newValve() *valve {
	return &valve{&coretest.MemoryLog{}, make(chan []string), make(chan error)}
}

func (v *valve) Append(ctx context.Context, records ...[]byte) error {
	var phases []string
	for _, r := range records {
		var rec command.Record
		if err := json.Unmarshal(r, &rec); err != nil {
			return err
		}
		phases = append(phases, string(rec.Phase))
	}
	v.writes <- phases
	if err := <-v.let; err != nil {
		return err
	}
	return v.RecordLog.Append(ctx, records...)
}

func TestNothingIsReportedBeforeItIsJournaled(t *testing.T) {
	v := newValve()
	_, s := newServer(t, pi.Options{Commands: command.Options{Journal: v}})
	c := dial(t, s, pi.ConnOptions{})
	c.send(`{"id":"1","idempotencyKey":"k","type":"create_session","sessionId":"s"}`)
	expect := func(want ...string) {
		t.Helper()
		if got := <-v.writes; !slices.Equal(got, want) {
			t.Errorf("got %v written, want %v", got, want)
		}
		c.ok(`{"type":"list_sessions"}`) // other commands do not wait
	}
	expect("command_accepted")
	if c.count("command_started", `"1"`) != 0 {
		t.Error("got the command started, want it to wait for the journal")
	}
	v.let <- nil
	expect("command_started", "command_finished")
	if c.count("command_finished", `"1"`) != 0 || c.count(`"response"`, `"id":"1"`) != 0 {
		t.Error("got the outcome, want it to wait for the journal")
	}
	v.let <- nil
	c.until(`"response"`, `"id":"1"`, `"success":true`)
}

func TestAFailingJournalStopsNoCommand(t *testing.T) {
	v := newValve()
	h, s := newServer(t, pi.Options{Commands: command.Options{Journal: v}})
	c := dial(t, s, pi.ConnOptions{})
	c.send(`{"id":"1","idempotencyKey":"k","type":"create_session","sessionId":"s"}`)
	for range 2 {
		<-v.writes
		v.let <- errors.New("the disk is full")
	}
	c.until(`"response"`, `"id":"1"`, `"success":true`)
	c.send(`{"id":"1","idempotencyKey":"k","type":"create_session","sessionId":"s"}`)
	c.until(`"response"`, `"id":"1"`, `"replayed":true`)
	if n := h.Counters()["pi.journal.failed"]; n != 3 {
		t.Errorf("got %d counted, want 3", n)
	}
}

func TestTheHistoryOfCommandsIsNewestFirst(t *testing.T) {
	log := &coretest.MemoryLog{}
	_, s := newRecovered(t, log)
	c := dial(t, s, pi.ConnOptions{})
	c.ok(`{"id":"1","type":"create_session","sessionId":"s"}`)
	c.fails(`{"id":"2","type":"set_session_name","sessionId":"s","name":"x","ifSessionVersion":7,"dependsOn":["1"]}`, "Session version mismatch: expected 7, got 0")
	type recovery struct {
		Enabled, Initialized bool
		InitState            string
		Filters              map[string]any
		Entries              []map[string]any
		Returned             int
		Truncated            bool
		MaxItemsReturned     int
		MaxItemsAllowed      int
		JournalPath          string
		SchemaVersion        int
		InitializationError  *string
	}
	ask := func(more string) (h recovery) {
		t.Helper()
		if err := json.Unmarshal(c.ok(`{"type":"get_command_history"`+more+`}`).Data, &h); err != nil {
			t.Fatal(err)
		}
		return h
	}
	h := ask(`,"sessionIdFilter":"s"`)
	if !h.Enabled || !h.Initialized || h.InitState != "ready" || h.Returned != 6 || h.Truncated || h.MaxItemsReturned != 100 || h.MaxItemsAllowed != 500 || h.Filters["sessionIdFilter"] != "s" {
		t.Errorf("got %+v, want six entries of the session", h)
	}
	var phases []string
	for _, e := range h.Entries {
		phases = append(phases, e["phase"].(string)[len("command_"):]+" "+e["commandId"].(string))
	}
	if want := []string{"finished 2", "started 2", "accepted 2", "finished 1", "started 1", "accepted 1"}; !slices.Equal(phases, want) {
		t.Errorf("got %v, want %v", phases, want)
	}
	last := h.Entries[0]
	for name, want := range map[string]any{
		"laneKey": "session:s", "explicitId": true, "sessionId": "s", "ifSessionVersion": 7.0, "success": false,
		"error": "Session version mismatch: expected 7, got 0", "commandType": "set_session_name",
	} {
		if last[name] != want {
			t.Errorf("%s: got %v, want %v", name, last[name], want)
		}
	}
	if digest, _ := last["fingerprint"].(string); !strings.HasPrefix(digest, "v2:sha256:") || len(digest) != len("v2:sha256:")+64 {
		t.Errorf("got the fingerprint %q, want v2:sha256: and 64 digits", digest)
	}
	if h := ask(`,"commandId":"1","limit":2`); h.Returned != 2 || !h.Truncated || h.MaxItemsReturned != 2 {
		t.Errorf("got %+v, want the last two entries of the command", h)
	}
	if h := ask(`,"toTimestamp":1`); h.Returned != 0 {
		t.Errorf("got %+v, want no entries of that time", h)
	}
}

func TestWithoutAJournalTheHistoryIsDisabled(t *testing.T) {
	_, s := newServer(t, pi.Options{})
	c := dial(t, s, pi.ConnOptions{})
	for _, kind := range []string{"get_command_history", "get_startup_recovery"} {
		if f := c.ok(`{"type":"` + kind + `"}`); !strings.Contains(string(f.Data), `"enabled":false,"initialized":false,"initState":"disabled"`) {
			t.Errorf("%s: got %s, want it disabled", kind, f.Data)
		}
	}
}

func TestTheRecoverySummaryFollowsServerReady(t *testing.T) {
	log := &coretest.MemoryLog{}
	_, s := newServer(t, pi.Options{Commands: command.Options{Journal: log, JournalPath: "/srv/hub"}})
	if err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	dial(t, s, ann).ok(`{"id":"secret","type":"create_session","sessionId":"s"}`)
	_, again := newServer(t, pi.Options{Commands: command.Options{Journal: copyLog(t, log), JournalPath: "/srv/hub"}})
	if err := again.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, without := newServer(t, pi.Options{})
	for name, tt := range map[string]struct {
		s    *pi.Server
		o    pi.ConnOptions
		want string
	}{
		"who has a past":      {again, ann, `"enabled":true,"initialized":true,"initState":"ready","journalPath":"[redacted]"`},
		"who has none":        {again, pi.ConnOptions{Principal: core.Principal{ID: "bob", Authenticated: true}}, `"recoveredOutcomes":0,`},
		"a client over lines": {again, pi.ConnOptions{Transport: pi.Stdio}, `"recoveredOutcomes":0,`},
		"without a journal":   {without, pi.ConnOptions{}, `"enabled":false,"initialized":false,"initState":"disabled","journalPath":"[redacted]"`},
	} {
		c := dial(t, tt.s, tt.o)
		c.until("startup_recovery_summary")
		if frames := c.received(); !has(frames[0], "server_ready") || !has(frames[1], `{"type":"startup_recovery_summary"`, tt.want) || has(frames[1], "secret") {
			t.Errorf("%s: got %s, want a summary with %s and no ids behind server_ready", name, c.log(), tt.want)
		}
	}
}

func TestOnlyOperatorsSeeThePathOfTheJournal(t *testing.T) {
	_, s := newServer(t, pi.Options{Commands: command.Options{Journal: &coretest.MemoryLog{}, JournalPath: "/srv/hub"}})
	for name, tt := range map[string]struct {
		o    core.Principal
		want string
	}{
		"a principal":               {core.Principal{ID: "ann", Authenticated: true}, "[redacted]"},
		"an operator":               {core.Principal{ID: "root", Authenticated: true, Operator: true}, "/srv/hub"},
		"whoever is on an open hub": {core.Principal{}, "/srv/hub"},
	} {
		c := dial(t, s, pi.ConnOptions{Principal: tt.o})
		for _, kind := range []string{"get_startup_recovery", "get_command_history", "get_metrics"} {
			if f := c.ok(`{"type":"` + kind + `"}`); !has(f, `"journalPath":"`+tt.want+`"`) {
				t.Errorf("%s, %s: got %s, want the path %s", name, kind, f.Data, tt.want)
			}
		}
		if c.count("startup_recovery_summary", "/srv/hub") != 0 {
			t.Errorf("%s: got the path in startup_recovery_summary, want it in no event", name)
		}
	}
}

func TestUnsupportedAndMalformedRecordsAreCountedAndSkipped(t *testing.T) {
	log := &coretest.MemoryLog{}
	_, s := newRecovered(t, log)
	dial(t, s, pi.ConnOptions{}).ok(`{"id":"1","idempotencyKey":"k","type":"create_session","sessionId":"s"}`)
	if err := log.Append(t.Context(), []byte(`{"v":2,"more":1}`), []byte(`{`), []byte(`{"v":1}`), nil); err != nil {
		t.Fatal(err)
	}
	_, s = newRecovered(t, copyLog(t, log))
	var recovery command.Recovery
	if err := json.Unmarshal(dial(t, s, pi.ConnOptions{}).ok(`{"type":"get_startup_recovery"}`).Data, &recovery); err != nil {
		t.Fatal(err)
	}
	if recovery.Scanned != 7 || recovery.Unsupported != 1 || recovery.Malformed != 3 || recovery.Outcomes != 1 || recovery.Failures != 0 {
		t.Errorf("got %+v, want seven records, one of another version, three of nothing and one outcome", recovery)
	}
}

func TestAServerStoppedWithoutADrainKeepsItsOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &coretest.MemoryLog{}
		h, s := newServer(t, pi.Options{Commands: command.Options{Journal: log}})
		w := newHeldAgent()
		joinAgent(t, h, core.Card{ID: "x"}, w.work)
		c := dial(t, s, pi.ConnOptions{})
		c.ok(`{"type":"create_session","sessionId":"s","agent":"x"}`)
		c.send(`{"id":"p","idempotencyKey":"k","type":"prompt","sessionId":"s","message":"long"}`)
		<-w.tasks
		over, cancel := context.WithCancel(t.Context())
		cancel()
		s.Drain(over)
		synctest.Wait() // the goroutines of the server have handled it
		if err := h.Close(over, "now"); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		c.until(`"response"`, `"id":"p"`)
		s.Close()
	})
}

// The journal is closed after the server, so it records commands that the end of the server
// interrupts.
func TestCommandsThatEndWithTheServerAreInTheJournal(t *testing.T) {
	log := &coretest.MemoryLog{}
	c := newShell(t, pi.Options{Commands: command.Options{Journal: log}})
	run := `{"id":"b","idempotencyKey":"k","type":"bash","sessionId":"s","command":"echo $$ > shell; sleep 1000"}`
	c.send(run)
	pidIn(t, filepath.Join(c.dir, "shell"))
	if err := c.hub.Close(t.Context(), "now"); err != nil {
		t.Fatal(err)
	}
	c.disconnect()
	c.server.Close()
	_, again := newRecovered(t, log)
	c.testClient = dial(t, again, pi.ConnOptions{})
	c.send(run)
	if f := c.until(`"response"`, `"id":"b"`); !has(f, `"cancelled":true`, `"replayed":true`) {
		t.Errorf("got %s, want its outcome", f.Raw)
	}
}
