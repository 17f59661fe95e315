package command_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/audit"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/policy"
)

// auditLines returns the lines of an audit of cancellations, the oldest a day ago.
func auditLines(t *testing.T, n int) string {
	t.Helper()
	l, err := audit.Open(t.Context(), audit.Options{Store: audit.NewMemory(journal.Retention{}), Hub: "h"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		who, at := "ana", time.Now()
		if i%2 == 1 {
			who, at = "bob\x1b", time.Now().Add(-24*time.Hour)
		}
		l.Audit(policy.Entry{At: at, Call: core.Call{Principal: core.Principal{ID: who}, Command: core.Decide{Task: core.TaskID(fmt.Sprint("t", i)), Decision: core.ApprovalDecided{ID: "c1"}}}})
	}
	var text strings.Builder
	if err := errors.Join(l.Close(), l.Read(t.Context(), 0, func(line []byte) bool {
		text.Write(append(line, '\n'))
		return true
	})); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestTheAuditIsShown(t *testing.T) {
	hub := fakeHub(t, map[string]string{"GET /v1/audit": auditLines(t, 300)})
	rows := func(args ...string) []string {
		t.Helper()
		code, out, stderr := run(t, append([]string{"audit", hub}, args...)...)
		if code != command.ExitDone {
			t.Fatalf("%q: got %d and %s, want %d", args, code, stderr, command.ExitDone)
		}
		return strings.Split(strings.TrimSpace(out), "\n")
	}
	if got := rows(); len(got) != 101 || !strings.Contains(got[100], "stop") || strings.Contains(strings.Join(got, ""), "\x1b") {
		t.Errorf("got %d lines to %q, want the newest 100 without control characters", len(got), got[len(got)-1])
	}
	if got := rows("--principal", "ana", "--act", "decide", "--since", "1h", "--limit", "0"); len(got) != 151 || !strings.Contains(got[1], "t0  ") || !strings.HasSuffix(got[1], "denied c1") {
		t.Errorf("got %d lines from %q, want those of ana", len(got), got[1])
	}
	if got := rows("--since", "1h", "--principal", "bob\x1b"); got[0] != "" {
		t.Errorf("got %q, want nothing of the last hour", got)
	}
	var list struct{ Audit []audit.Line }
	if err := json.Unmarshal([]byte(strings.Join(rows("--json", "--limit=3"), "")), &list); err != nil || len(list.Audit) != 3 || list.Audit[2].Seq != 302 {
		t.Errorf("got %+v and %v, want the newest 3", list.Audit, err)
	}
}

func TestTheAuditIsVerified(t *testing.T) {
	good := auditLines(t, 4)
	lines := strings.SplitAfter(good, "\n")
	killed := fmt.Sprintf(`{"seq":1,"at":"2026-01-02T03:04:05Z","principal":"","act":"missing","object":"","outcome":"internal","prev":"%064d"}`+"\n", 0)
	for text, want := range map[string]string{
		killed: "; entries that could not be written: 0; times that the hub was killed or taken over and its last entries may be missing: 1\n",
		strings.Join(slices.Delete(slices.Clone(lines), 2, 3), ""):        "line 3 (seq 4): its prev is not the hash of the line before",
		strings.Join(slices.Insert(slices.Clone(lines), 3, lines[2]), ""): "line 4 (seq 3): its prev is not the hash of the line before",
		good:                                 "the audit is intact: entries: 6, from 1 to 6, last hash ",
		strings.Replace(good, "t1", "t9", 1): "the audit is not intact: line 4 (seq 4): its prev is not the hash of the line before",
		good[strings.Index(good, "\n")+1:]:   "the audit is intact: entries: 5, from 2 to 6",
		strings.TrimSuffix(good, "\n"):       "cut off",
		"":                                   "the audit has no entries",
		good[:strings.Index(good, `{"seq":3,`)+9] + "\n": "line 3: it is cut off",
	} {
		code, out, stderr := run(t, "audit", "--verify", fakeHub(t, map[string]string{"GET /v1/audit": text}))
		if wantFailure := !strings.HasPrefix(want, "; ") && !strings.HasPrefix(want, "the audit is intact") && !strings.HasPrefix(want, "the audit has"); !strings.Contains(out+stderr, want) || wantFailure == (code == command.ExitDone) {
			t.Errorf("got %d, %q and %q, want %q", code, out, stderr, want)
		}
	}
	if code, _, stderr := run(t, "audit", "--verify", "--act", "open"); code == command.ExitDone || !strings.Contains(stderr, "--act") {
		t.Errorf("got %d and %q, want a refusal of --act", code, stderr)
	}
}

func TestAnAuditThatTheHubRefusesIsNotCalledBroken(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/audit", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"code":"not_authorized","detail":"the audit is for operators"}`)
	})
	hub := httptest.NewServer(mux)
	defer hub.Close()
	code, _, stderr := run(t, "audit", "--verify", "--hub", hub.URL)
	if code != command.ExitFailed || stderr != "dragoman: the audit is for operators\n" {
		t.Errorf("got %d and %q, want the refusal alone", code, stderr)
	}
}

func TestAnUnknownActIsRefusedWithTheNearest(t *testing.T) {
	for act, want := range map[string]string{"decid": "did you mean decide?", "zzz": "use one of connect, start"} {
		if code, _, stderr := run(t, "audit", "--act", act); code != command.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("--act %s: got %d and %q, want %q", act, code, stderr, want)
		}
	}
}
