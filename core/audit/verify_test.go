package audit_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/audit"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// chain returns the lines of an audit of 8 calls: 10 lines.
func chain(t testing.TB) (all [][]byte) {
	l, err := audit.Open(t.Context(), audit.Options{Store: &coretest.MemoryLog{}})
	if err != nil {
		t.Fatal(err)
	}
	for range 8 {
		l.Audit(call("ana", core.Cancel{Task: "t"}))
	}
	if err := errors.Join(l.Close(), l.Read(t.Context(), 0, func(line []byte) bool {
		all = append(all, line)
		return true
	})); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEveryChangeIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		change func(all [][]byte) [][]byte
		line   int // that is named; 0 if all is well
	}{
		"nothing":               {func(all [][]byte) [][]byte { return all }, 0},
		"no lines":              {func([][]byte) [][]byte { return nil }, 0},
		"the oldest are gone":   {func(all [][]byte) [][]byte { return all[3:] }, 0},
		"lines have line feeds": {func(all [][]byte) [][]byte { return bytes.SplitAfter(bytes.Join(all, []byte("\n")), []byte("\n")) }, 0},
		"one is changed": {func(all [][]byte) [][]byte {
			all[4] = bytes.Replace(all[4], []byte("ana"), []byte("bob"), 1)
			return all
		}, 6},
		"one is removed":      {func(all [][]byte) [][]byte { return slices.Delete(all, 4, 5) }, 5},
		"one is there twice":  {func(all [][]byte) [][]byte { return slices.Insert(all, 4, all[4]) }, 6},
		"two are swapped":     {func(all [][]byte) [][]byte { all[4], all[5] = all[5], all[4]; return all }, 5},
		"one is no line":      {func(all [][]byte) [][]byte { all[4] = []byte("{"); return all }, 5},
		"the last is cut off": {func(all [][]byte) [][]byte { all[9] = all[9][:30]; return all }, 10},
		"the first has another before": {func(all [][]byte) [][]byte {
			all[0] = bytes.Replace(all[0], []byte("0000"), []byte("1000"), 1)
			return all
		}, 1},
		"the first is changed": {func(all [][]byte) [][]byte {
			all[0] = bytes.Replace(all[0], []byte("start"), []byte("stop"), 1)
			return all
		}, 2},
	} {
		err := coretest.VerifyAudit(slices.Values(c.change(chain(t))))
		var broken *audit.Broken
		if errors.As(err, &broken); c.line == 0 && err != nil || c.line > 0 && (broken == nil || broken.Line != c.line) {
			t.Errorf("%s: got %v, want line %d", name, err, c.line)
		}
	}
}

func TestAChainThatWasWrittenAnewButSkipsANumberIsFound(t *testing.T) {
	all := chain(t)[:2]
	line := strings.NewReplacer(`"seq":2`, `"seq":3`).Replace(string(all[1]))
	if err := coretest.VerifyAudit(slices.Values([][]byte{all[0], []byte(line)})); err == nil || !strings.Contains(err.Error(), "line 2 (seq 3): it follows 1") {
		t.Errorf("got %v, want an error about the number", err)
	}
}

func TestMemoryIsARecordLog(t *testing.T) {
	coretest.RecordLog(t, func(*testing.T) core.RecordLog { return audit.NewMemory(journal.Retention{}) })
	coretest.RecordRetention(t, func(*testing.T) core.RecordLog { return audit.NewMemory(journal.Retention{Bytes: 64 << 10}) })
}

func TestAfterRetentionTheChainBeginsWithTheOldestKept(t *testing.T) {
	s := audit.NewMemory(journal.Retention{Bytes: 64 << 10})
	for range 3 {
		l := begin(t, audit.Options{Store: s})
		for range 1000 {
			l.Audit(call("ana", core.WatchAll{}))
		}
		all := lines(t, l)
		if n := len(all); n > 1000 || all[n-1].Seq < 1000 {
			t.Errorf("got %d lines to %d, want the newest", n, all[n-1].Seq)
		}
		end(t, l)
	}
}

func FuzzVerify(f *testing.F) {
	f.Add(bytes.Join(chain(f), []byte("\n")))
	f.Add([]byte(`{"seq":2,"prev":""}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var c audit.Chain
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			if c.Next(line) != nil {
				return
			}
		}
		if c.End() == nil && c.Lines > 1 && c.Last < c.First {
			t.Errorf("got a chain from %d to %d", c.First, c.Last)
		}
	})
}

func BenchmarkAudit(b *testing.B) {
	l, err := audit.Open(b.Context(), audit.Options{Store: audit.NewMemory(journal.Retention{Bytes: 4 << 20})})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	e := call("ana", &core.Open{Request: &core.Request{To: core.ToAgent("shout")}})
	e.Task = "0198f3c2-0000-7000-8000-000000000000"
	b.ReportAllocs()
	for b.Loop() {
		l.Audit(e)
	}
}

func BenchmarkVerify(b *testing.B) {
	all := chain(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := coretest.VerifyAudit(slices.Values(all)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(all)), "ns/line")
}
