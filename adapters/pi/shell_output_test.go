package pi_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/pi/shell"
)

func TestTheEndOfTheOutputDoesNotDependOnTheSizesOfWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{"", "x", "héllo wörld 🙂", strings.Repeat("é", 300), strings.Repeat("y", 60_000)})
		lines := rapid.SliceOfN(line, 0, 400).Draw(t, "lines")
		if rapid.Bool().Draw(t, "many") {
			lines = append(lines, strings.Split(strings.Repeat("z\n", 3000), "\n")...)
		}
		all := strings.Join(lines, "\n") + rapid.SampledFrom([]string{"", "\n", "end"}).Draw(t, "end")
		reported, skipped := 0, int64(0)
		out := shell.NewOutput(func(piece string, n int64) { reported, skipped = reported+len(piece), skipped+n })
		for rest := all; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			_, _ = out.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		got := out.Close()
		text := got.Text
		if !strings.HasSuffix(all, text) || got.Truncated != (len(text) < len(all)) {
			t.Fatalf("got %d bytes and truncated %v of %d, want its end", len(text), got.Truncated, len(all))
		}
		if len(text) > shell.TailBytes || strings.Count(strings.TrimSuffix(text, "\n"), "\n") >= shell.TailLines || !utf8.ValidString(text) {
			t.Fatalf("got %d bytes, want at most %d of at most %d lines of UTF-8", len(text), shell.TailBytes, shell.TailLines)
		}
		if want := int64(len(all)); got.Bytes != want {
			t.Fatalf("bytes: got %d, want %d", got.Bytes, want)
		}
		want := int64(strings.Count(all, "\n"))
		if all != "" && !strings.HasSuffix(all, "\n") {
			want++
		}
		if got.Lines != want {
			t.Fatalf("lines: got %d, want %d", got.Lines, want)
		}
		if cut := len(all) - len(text); cut > 0 && all[cut-1] != '\n' && strings.Contains(strings.TrimSuffix(text, "\n"), "\n") {
			t.Fatalf("got text that begins in the middle of a line, want whole lines")
		}
	})
}

func TestAPieceEndsWithAWholeCharacter(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a": "a", "é": "é", "aé"[:2]: "a", "a🙂"[:4]: "a", "\xff\xff\xff\xff\xff": "\ufffd", "\x80": "\ufffd",
	} {
		synctest.Test(t, func(t *testing.T) {
			got := ""
			out := shell.NewOutput(func(piece string, _ int64) { got += piece })
			_, _ = out.Write([]byte(text))
			time.Sleep(shell.PieceEvery)
			synctest.Wait()
			if got != want {
				t.Errorf("%q: got %q, want %q", text, got, want)
			}
			out.Close()
			if rest := strings.ToValidUTF8(text, "\ufffd"); len(got) < len(rest) {
				t.Errorf("%q: got %q after Close, want all of it", text, got)
			}
		})
	}
}

func TestEveryByteIsReportedOrCountedAsSkippedAtABoundedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reported, skipped, pieces := 0, int64(0), 0
		out := shell.NewOutput(func(piece string, n int64) {
			if len(piece) > shell.PieceBytes {
				t.Errorf("a piece: got %d bytes, want at most %d", len(piece), shell.PieceBytes)
			}
			reported, skipped, pieces = reported+len(piece), skipped+n, pieces+1
		})
		const times, each = 100, 1000
		for range times {
			_, _ = out.Write([]byte(strings.Repeat("x", each)))
			time.Sleep(shell.PieceEvery / 50)
		}
		out.Close()
		if got := reported + int(skipped); got != times*each || skipped == 0 {
			t.Errorf("got %d bytes reported and %d skipped, want %d in total", reported, skipped, times*each)
		}
		if pieces > 3 {
			t.Errorf("got %d pieces in two reporting intervals, want at most 3", pieces)
		}
	})
}
