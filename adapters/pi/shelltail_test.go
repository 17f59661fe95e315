package pi

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestTheEndOfWhatIsPrintedIsKeptHoweverItComes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{"", "x", "héllo wörld 🙂", strings.Repeat("é", 300), strings.Repeat("y", 60_000)})
		lines := rapid.SliceOfN(line, 0, 400).Draw(t, "lines")
		if rapid.Bool().Draw(t, "many") {
			lines = append(lines, strings.Split(strings.Repeat("z\n", 3000), "\n")...)
		}
		all := strings.Join(lines, "\n") + rapid.SampledFrom([]string{"", "\n", "end"}).Draw(t, "end")
		var got tail
		for rest := all; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			got.write([]byte(rest[:n]))
			rest = rest[n:]
		}
		text, truncated := got.text()
		if !strings.HasSuffix(all, text) || truncated != (len(text) < len(all)) {
			t.Fatalf("got %d bytes and truncated %v of %d, want its end", len(text), truncated, len(all))
		}
		if len(text) > tailBytes || strings.Count(strings.TrimSuffix(text, "\n"), "\n") >= tailLines || !utf8.ValidString(text) {
			t.Fatalf("got %d bytes, want at most %d of at most %d lines of UTF-8", len(text), tailBytes, tailLines)
		}
		if want := int64(len(all)); got.bytes != want {
			t.Fatalf("bytes: got %d, want %d", got.bytes, want)
		}
		want := int64(strings.Count(all, "\n"))
		if all != "" && !strings.HasSuffix(all, "\n") {
			want++
		}
		if got.total() != want {
			t.Fatalf("lines: got %d, want %d", got.total(), want)
		}
		if cut := len(all) - len(text); cut > 0 && all[cut-1] != '\n' && strings.Contains(strings.TrimSuffix(text, "\n"), "\n") {
			t.Fatalf("got a text that begins in the middle of a line, want whole lines")
		}
	})
}

func TestAPieceEndsWithAWholeLetter(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 1, "é": 2, "aé"[:2]: 1, "a🙂"[:4]: 1, "\xff\xff\xff\xff\xff": 5, "\x80": 1} {
		if got := runes([]byte(text)); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}
