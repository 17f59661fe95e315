package audit_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/audit"
	"github.com/dragoman-hub/dragoman/core/journal"
)

func TestCallsAreWrittenAsAChain(t *testing.T) {
	l := begin(t, audit.Options{Store: &store{}, Hub: "h1"})
	open := call("ana", &core.Open{Request: &core.Request{To: core.ToAgent("shout"), Content: "the secret plan"}, For: core.Principal{ID: "zoe"}})
	open.Task = "0198-task"
	l.Audit(open)
	l.Audit(call("ana", core.Decide{Task: "0198-task", Decision: core.ApprovalDecided{ID: "c1", Approved: true, Reason: "the secret reason"}}))
	denied := call("bob", core.Cancel{Task: "0198-task", Reason: "no secret"})
	denied.Err = fmt.Errorf("at the door: %w", core.NewFault(core.CodeNotAuthorized, "task belongs to somebody else"))
	l.Audit(denied)
	odd := call("bob", core.Restart{Name: "x"})
	odd.Err = errors.New("a secret path could not be read")
	l.Audit(odd)
	all := lines(t, l)
	want(t, "the audit", acts(all),
		" start h1 ok", "ana open shout ok", "ana decide 0198-task ok", "bob cancel 0198-task not_authorized", "bob restart x internal")
	if o := all[1]; o.Task != "0198-task" || o.For != "zoe" {
		t.Errorf("got %+v, want the task and for whom", o)
	}
	if d := all[2]; d.Approved == nil || !*d.Approved || d.Call != "c1" {
		t.Errorf("got %+v, want what was decided on which call", d)
	}
	if text := fmt.Sprintf("%+v", all); strings.Contains(text, "secret") {
		t.Errorf("got %s, want no content", text)
	}
	end(t, l)
	want(t, "after the end", acts(lines(t, l))[5:], " stop h1 ok")
}

func TestTheChainContinuesAfterARestart(t *testing.T) {
	s := &store{}
	for range 3 {
		l := begin(t, audit.Options{Store: s, Hub: "h1"})
		l.Audit(call("ana", core.WatchAll{}))
		end(t, l)
	}
	l := begin(t, audit.Options{Store: s})
	defer end(t, l)
	all := lines(t, l)
	if got := all[len(all)-1].Seq; got != 10 || len(all) != 10 {
		t.Errorf("got %d lines to %d, want 10: %q", len(all), got, acts(all))
	}
	if got := all[:1]; got[0].Prev != strings.Repeat("0", 64) {
		t.Errorf("got %q before the first line, want zeros", got[0].Prev)
	}
}

func TestAKillIsNotSilent(t *testing.T) {
	for name, torn := range map[string]string{
		"whole lines":                    "",
		"a torn last line":               `{"seq":2,"at":"2026-01-02T03:04:05Z","principal":"an`,
		"zeros":                          "\x00\x00",
		"a last line of another version": `{"sequence":2}`,
	} {
		s := &store{}
		l := begin(t, audit.Options{Store: s, Hub: "h1"})
		first := lines(t, l)
		end(t, l)
		killed := &store{}
		keepFirst(t, &s.MemoryLog, &killed.MemoryLog, len(first))
		if torn != "" {
			if err := killed.MemoryLog.Append(t.Context(), []byte(torn)); err != nil {
				t.Fatal(err)
			}
		}
		l = begin(t, audit.Options{Store: killed, Hub: "h1"})
		all := lines(t, l)
		want(t, name, acts(all[len(all)-2:]), " missing  internal", " start h1 ok")
		if got, seq := all[len(all)-1].Seq, uint64(len(all)); got != seq {
			t.Errorf("%s: got the sequence number %d, want %d", name, got, seq)
		}
		end(t, l)
	}
}

// keepFirst copies the first n records.
func keepFirst(t *testing.T, from, to core.RecordLog, n int) {
	t.Helper()
	var kept [][]byte
	if err := from.Replay(t.Context(), func(_ time.Time, r []byte) bool {
		kept = append(kept, r)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if err := to.Append(t.Context(), kept[:n]...); err != nil {
		t.Fatal(err)
	}
}

func TestAFailingStoreDelaysNobodyAndTheGapIsCounted(t *testing.T) {
	s, c := &store{refuses: errors.New("no space left")}, &counter{}
	l := begin(t, audit.Options{Store: s, Count: c.count})
	waitFor(t, func() bool { return l.Err() != nil }) // now nothing makes room
	const n = 5000                                    // more than there is room for
	for i := range n {
		l.Audit(call("ana", core.Cancel{Task: core.TaskID(fmt.Sprint(i))}))
	}
	missing := c.of("audit.missing")
	if missing == 0 || missing >= n {
		t.Fatalf("got %d entries that were dropped, want some of %d", missing, n)
	}
	if err := l.Read(t.Context(), 0, func([]byte) bool { return true }); err != nil {
		t.Errorf("reading meanwhile: got %v, want no error", err)
	}
	s.set(func(s *store) { s.refuses = nil })
	waitFor(t, func() bool { return l.Err() == nil })
	l.Audit(call("ana", core.Cancel{Task: "later"}))
	all := lines(t, l)
	i := slices.IndexFunc(all, func(l audit.Line) bool { return l.Act == audit.ActMissing })
	if i < 0 || int(all[i].Count) != missing || all[i].Outcome != "overloaded" {
		t.Fatalf("got %d lines, the line of those that are missing at %d, want one of %d", len(all), i, missing)
	}
	if written := len(all) - 3; written+missing != n || all[len(all)-1].Object != "later" || i != len(all)-2 {
		t.Errorf("got %d entries and %d missing at %d of %d, want %d in order", written, missing, i, len(all), n)
	}
	if c.of("audit.refused") == 0 {
		t.Error("got no count of refused writes, want some")
	}
	end(t, l)
}

// waitFor waits until the condition holds.
func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	for stop := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(stop) {
			t.Fatal("got nothing, want the condition to hold")
		}
	}
}

func TestAWriteThatSeemedToFailIsReadOnce(t *testing.T) {
	s := &store{refuses: errors.New("timeout"), writes: true}
	l := begin(t, audit.Options{Store: s})
	for i := range 3 {
		l.Audit(call("ana", core.Cancel{Task: core.TaskID(fmt.Sprint(i))}))
	}
	waitFor(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.tries > 2
	})
	s.set(func(s *store) { s.refuses = nil })
	waitFor(t, func() bool { return l.Err() == nil })
	l.Audit(call("ana", core.Cancel{Task: "later"}))
	want(t, "the audit", acts(lines(t, l)), " start  ok", "ana cancel 0 ok", "ana cancel 1 ok", "ana cancel 2 ok", "ana cancel later ok")
	end(t, l)
	l = begin(t, audit.Options{Store: s})
	want(t, "after a restart", acts(lines(t, l))[5:], " stop  ok", " start  ok")
	end(t, l)
}

func TestCloseSaysWhatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, s := range map[string]*store{
			"a store that refuses": {refuses: errors.New("no space left")},
			"a store that hangs":   {hangs: make(chan struct{})},
		} {
			l := begin(t, audit.Options{Store: s})
			l.Audit(call("ana", core.WatchAll{}))
			if err := l.Close(); err == nil || !strings.Contains(err.Error(), "entries that are lost: 3") {
				t.Errorf("%s: got %v, want an error that counts the start, the call and the stop", name, err)
			}
			l.Audit(call("ana", core.WatchAll{})) // is dropped
			if err := l.Close(); err != nil {
				t.Errorf("%s: closing again: got %v, want no error", name, err)
			}
		}
	})
}

func TestCloseWaitsForAStoreThatElects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{refuses: errors.New("no leader")}
		l := begin(t, audit.Options{Store: s, Patience: 9 * time.Second})
		time.AfterFunc(8*time.Second, func() { s.set(func(s *store) { s.refuses = nil }) })
		if err := l.Close(); err != nil {
			t.Errorf("got %v, want all written", err)
		}
	})
}

func TestCloseDoesNotWaitForAStoreThatAnotherHubHasTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := begin(t, audit.Options{Store: &store{refuses: journal.ErrFenced}, Patience: 9 * time.Second})
		l.Audit(call("ana", core.WatchAll{}))
		began := time.Now()
		if err := l.Close(); !errors.Is(err, journal.ErrFenced) || time.Since(began) > time.Second {
			t.Errorf("got %v after %s, want what is lost within 1s", err, time.Since(began))
		}
	})
}

func TestCloseDoesNotWaitForItsLastLineWhereNothingCanBeStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		l := begin(t, audit.Options{Store: s, Patience: 9 * time.Second, Unavailable: func() bool { return true }})
		l.Audit(call("ana", core.WatchAll{}))
		want(t, "the audit", acts(lines(t, l)), " start  ok", "ana watch_all  ok")
		s.set(func(s *store) { s.refuses = errors.New("no leader") })
		began := time.Now()
		if err := l.Close(); err != nil || time.Since(began) > 2*time.Second {
			t.Errorf("got %v after %s, want no error within 2s", err, time.Since(began))
		}
	})
}

func TestCloseWaitsWithWhatIsOfValueWhereNothingCanBeStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{refuses: errors.New("no leader")}
		l := begin(t, audit.Options{Store: s, Patience: 9 * time.Second, Unavailable: func() bool { return true }})
		l.Audit(call("ana", core.WatchAll{}))
		time.AfterFunc(8*time.Second, func() { s.set(func(s *store) { s.refuses = nil }) })
		if err := l.Close(); err != nil {
			t.Errorf("got %v, want all written", err)
		}
	})
}

func TestConnectionsAreAudited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := begin(t, audit.Options{Store: &store{}})
		refused := core.NewFault(core.CodeUnauthenticated, "the token is wrong")
		l.Connected(core.Principal{ID: "ana"}, "rest", "10.0.0.1:4000", nil)
		l.Connected(core.Principal{ID: "ana"}, "rest", "10.0.0.1:4001", nil) // with every request
		l.Connected(core.Principal{ID: "ana"}, "pi", "@", nil)
		l.Connected(core.Principal{}, "grpc", "[2001:db8::1]:77", refused)
		want(t, "the audit", acts(lines(t, l))[1:],
			"ana connect rest 10.0.0.1 ok", "ana connect pi @ ok", " connect grpc 2001:db8::1 unauthenticated")
		time.Sleep(11 * time.Minute)
		l.Connected(core.Principal{ID: "ana"}, "rest", "10.0.0.1:4002", nil)
		if got := len(lines(t, l)); got != 5 {
			t.Errorf("got %d lines, want the visit again after a while", got)
		}
		end(t, l)
	})
}

func TestAFloodOfRefusalsSharesALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := begin(t, audit.Options{Store: &store{}})
		const each = 1000
		for range 3 {
			for range each {
				l.Connected(core.Principal{}, "grpc", "10.0.0.1:1", core.NewFault(core.CodeUnauthenticated, "no"))
			}
			time.Sleep(2 * time.Minute)
		}
		l.Connected(core.Principal{}, "grpc", "10.0.0.1:1", core.NewFault(core.CodeUnauthenticated, "no"))
		end(t, l)
		var n uint64
		all := lines(t, l)
		for _, line := range all {
			if line.Act == audit.ActConnect {
				n += max(1, line.Count)
			}
		}
		if n != 3*each+1 || len(all) != 3*11+1+2 {
			t.Errorf("got %d refusals in %d lines, want %d in 36", n, len(all), 3*each+1)
		}
	})
}

// Whoever may connect can be refused as often as it likes.
func TestAFloodOfRefusedCommandsSharesALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := begin(t, audit.Options{Store: audit.NewMemory(journal.Retention{})})
		refused := func(who string, times int, err error) {
			for range times {
				e := call(who, core.Cancel{Task: "t"})
				e.Err = err
				l.Audit(e)
			}
		}
		refused("eve", 1000, core.NewFault(core.CodeNotAuthorized, "no"))
		refused("bob", 1, core.NewFault(core.CodeNotAuthorized, "no"))
		refused("eve", 150, core.NewFault(core.CodeUnknownTask, "no"))
		refused("eve", 500, nil)
		time.Sleep(2 * time.Minute)
		refused("eve", 1, core.NewFault(core.CodeNotAuthorized, "no"))
		for i := range 5000 {
			refused(strconv.Itoa(i), 1, core.NewFault(core.CodeNotAuthorized, "no"))
		}
		end(t, l)
		sums, own := map[string]uint64{}, map[string]int{}
		for _, line := range lines(t, l) {
			who := line.Principal
			if _, err := strconv.Atoi(who); err == nil {
				who = "many"
			}
			own[who+" "+line.Outcome]++
			sums[who+" "+line.Outcome] += max(1, line.Count)
		}
		for what, n := range map[string]uint64{"eve not_authorized": 1001, "bob not_authorized": 1, "eve unknown_task": 150, "eve ok": 500} {
			if sums[what] != n {
				t.Errorf("%s: got %d entries, want %d", what, sums[what], n)
			}
		}
		if all := sums["many not_authorized"] + sums[" not_authorized"]; all != 5000 {
			t.Errorf("5000 principals: got %d refusals, want all", all)
		}
		if own["eve not_authorized"] != 102 || own["eve unknown_task"] != 101 || own["eve ok"] != 500 || own["many not_authorized"]+own[" not_authorized"] > 1200 {
			t.Errorf("got the lines %v, want 100 for each command and outcome of a minute and one for the others", own)
		}
	})
}

func TestASecretThatACallerGivesAsANameIsNotWritten(t *testing.T) {
	redacted := func(text string) string { return strings.ReplaceAll(text, "hunter2", "[redacted]") }
	l := begin(t, audit.Options{Store: &store{}, Redact: redacted})
	l.Audit(call("ana", core.Cancel{Task: "hunter2"}))
	l.Audit(call("ana", core.CallTool{Tool: strings.Repeat("x", 508) + "hunter2"}))
	l.Audit(call("ana", core.Decide{Task: "t", Decision: core.ApprovalDecided{ID: "hunter2"}}))
	for _, line := range lines(t, l) {
		if text := line.Object + line.Call; strings.Contains(text, "hun") {
			t.Errorf("%s: got %q, want no secret, nor a part of it", line.Act, text)
		}
	}
	end(t, l)
}

func TestNamesAreBounded(t *testing.T) {
	l := begin(t, audit.Options{Store: &store{}})
	defer end(t, l)
	l.Audit(call("ana", core.CallTool{Tool: strings.Repeat("é", 1<<20)}))
	l.Audit(call("ana", core.CallTool{Tool: "a\xff\x00\n\"<"}))
	all := lines(t, l)
	if got := all[1].Object; len(got) > 600 || !strings.HasSuffix(got, "é…") {
		t.Errorf("got an object of %d bytes, want a short one", len(got))
	}
	if got := all[2].Object; got != "a\ufffd\x00\n\"<" {
		t.Errorf("got %q, want the name", got)
	}
}

func TestReadingContinuesAfterALine(t *testing.T) {
	l := begin(t, audit.Options{Store: audit.NewMemory(journal.Retention{})})
	defer end(t, l)
	for i := range 600 {
		l.Audit(call("ana", core.Cancel{Task: core.TaskID(fmt.Sprint(i))}))
	}
	lines(t, l)
	var n int
	if err := l.Read(t.Context(), 400, func([]byte) bool { n++; return n < 7 }); err != nil || n != 7 {
		t.Errorf("got %d lines and %v, want 7", n, err)
	}
	n = 0
	if err := l.Read(t.Context(), 598, func([]byte) bool { n++; return true }); err != nil || n != 3 {
		t.Errorf("got %d lines and %v, want the last 3", n, err)
	}
}

func TestTheAuditIsSafeForConcurrentUse(t *testing.T) {
	l := begin(t, audit.Options{Store: &store{}})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				l.Audit(call("ana", core.WatchAll{}))
				l.Connected(core.Principal{ID: "ana"}, "rest", "10.0.0.1:1", nil)
			}
		})
		all.Go(func() { lines(t, l) })
	}
	all.Wait()
	end(t, l)
	if got := len(lines(t, l)); got != 8*200+3 {
		t.Errorf("got %d lines, want every call", got)
	}
}
