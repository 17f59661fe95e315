package strictjson_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// joined returns the text of JSON strings that are pieces of it.
func joined(t testing.TB, pieces ...string) string {
	t.Helper()
	var h strictjson.Halves
	var text strings.Builder
	for _, p := range pieces {
		v, err := strictjson.Parse([]byte(p), strictjson.Limits{})
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		piece, ok := v.Piece()
		if !ok {
			t.Fatalf("%s: got no piece, want one", p)
		}
		add := h.Join(piece)
		if !utf8.ValidString(add) {
			t.Errorf("%s: got %q, want UTF-8", p, add)
		}
		text.WriteString(add)
	}
	return text.String() + h.Rest()
}

func TestHalvesOfACharacterInTwoPiecesAreOneCharacter(t *testing.T) {
	for want, pieces := range map[string][]string{
		"😀":        {`"\ud83d"`, `"\ude00"`},
		"a😀b":      {`"a\uD83D"`, `"\uDE00b"`},
		"a 😀":      {`"a "`, `"\ud83d"`, `""`, `"\ude00"`},
		"😀😀":       {`"\ud83d\ude00\ud83d"`, `"\ude00"`},
		"�":        {`"\ud83d"`},
		"�a":       {`"\ud83d"`, `"a"`},
		"��":       {`"\ud83d"`, `"\ud83d"`},
		"�b":       {`"\ude00b"`},
		"a�b":      {`"a\ud83db"`},
		"��x":      {`"\ude00\ud83d"`, `"x"`},
		`a\ud83d`:  {`"a\\ud83d"`},
		`a\�`:      {`"a\\\ud83d"`},
		"\ufffd a": {`"\ufffd"`, `" a"`},
		"한é😀":      {`"한é😀"`},
	} {
		if got := joined(t, pieces...); got != want {
			t.Errorf("%q: got %q, want %q", pieces, got, want)
		}
	}
}

// FuzzHalves cuts a text between any two units of UTF-16: the pieces are the text.
func FuzzHalves(f *testing.F) {
	f.Add("a😀b", 2)
	f.Add("😀😀", 3)
	f.Add("\\\"\x00\u2028", 1)
	f.Fuzz(func(t *testing.T, text string, at int) {
		units := utf16.Encode([]rune(text))
		if at < 0 || at > len(units) {
			return
		}
		if got, want := joined(t, quoted(units[:at]), quoted(units[at:])), string(utf16.Decode(units)); got != want {
			t.Errorf("cut at %d: got %q, want %q", at, got, want)
		}
	})
}

// quoted writes units of UTF-16 as a JSON string, each as an escape.
func quoted(units []uint16) string {
	const digits = "0123456789abcdef"
	out := []byte{'"'}
	for _, u := range units {
		out = append(out, '\\', 'u', digits[u>>12], digits[u>>8&15], digits[u>>4&15], digits[u&15])
	}
	return string(append(out, '"'))
}

func BenchmarkPiece(b *testing.B) {
	raw, _ := json.Marshal("a piece of an answer, as most are")
	var h strictjson.Halves
	v, _ := strictjson.Parse(raw, strictjson.Limits{})
	for b.Loop() {
		p, _ := v.Piece()
		h.Join(p)
	}
}
