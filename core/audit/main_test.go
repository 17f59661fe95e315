package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/audit"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store is a log of records that can refuse, hang, and write although it refuses.
type store struct {
	coretest.MemoryLog
	mu      sync.Mutex
	refuses error
	writes  bool          // although it refuses
	hangs   chan struct{} // until this is closed
	tries   int
}

func (s *store) Append(ctx context.Context, records ...[]byte) error {
	s.mu.Lock()
	refuses, writes, hangs := s.refuses, s.writes, s.hangs
	s.tries++
	s.mu.Unlock()
	if hangs != nil {
		select {
		case <-hangs:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if refuses != nil && !writes {
		return refuses
	}
	return errors.Join(s.MemoryLog.Append(ctx, records...), refuses)
}

func (s *store) set(change func(*store)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// counter counts by name.
type counter struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counter) count(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[name]++
}

func (c *counter) of(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[name]
}

// begin opens an audit that the test closes.
func begin(t *testing.T, o audit.Options) *audit.Log {
	t.Helper()
	l, err := audit.Open(t.Context(), o)
	if err != nil {
		t.Fatalf("opening: got %v, want no error", err)
	}
	return l
}

func end(t *testing.T, l *audit.Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Errorf("closing: got %v, want no error", err)
	}
}

// lines returns the lines of the audit, which must be a chain.
func lines(t *testing.T, l *audit.Log) []audit.Line {
	t.Helper()
	var raw [][]byte
	if err := l.Read(t.Context(), 0, func(line []byte) bool {
		raw = append(raw, line)
		return true
	}); err != nil {
		t.Fatalf("reading: got %v, want no error", err)
	}
	if err := coretest.VerifyAudit(slices.Values(raw)); err != nil {
		t.Errorf("verifying: got %v, want a chain", err)
	}
	all := make([]audit.Line, len(raw))
	for i, r := range raw {
		_ = json.Unmarshal(r, &all[i]) // a torn line stays zero
	}
	return all
}

func call(who string, c core.Command) policy.Entry {
	return policy.Entry{At: time.Now(), Call: core.Call{ID: core.NewID(), Principal: core.Principal{ID: who}, Command: c}}
}

// acts returns who did what to what, with which outcome.
func acts(all []audit.Line) (out []string) {
	for _, l := range all {
		out = append(out, l.Principal+" "+l.Act+" "+l.Object+" "+l.Outcome)
	}
	return out
}

func want(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}
