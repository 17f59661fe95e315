package edge_test

import (
	"encoding/binary"
	"testing"
	"unicode/utf16"

	"github.com/dragoman-hub/dragoman/core/edge"
)

// encoded returns a text in UTF-16 or UTF-32.
func encoded(text string, order binary.AppendByteOrder, wide bool) (out []byte) {
	for _, r := range text {
		if wide {
			out = order.AppendUint32(out, uint32(r))
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			out = order.AppendUint16(out, unit)
		}
	}
	return out
}

func TestATextInAnotherEncodingIsNamed(t *testing.T) {
	for _, text := range []string{`{"a":1}`, edge.Mark + `{"a":1}`, "7", "ab"} {
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			if got := edge.Encoding(encoded(text, order, false)); got != "UTF-16" {
				t.Errorf("%q in UTF-16, %s: got %q", text, order, got)
			}
			if got := edge.Encoding(encoded(text, order, true)); got != "UTF-32" {
				t.Errorf("%q in UTF-32, %s: got %q", text, order, got)
			}
		}
		if got := edge.Encoding([]byte(text)); got != "" {
			t.Errorf("%q in UTF-8: got %q, want none", text, got)
		}
	}
	for _, text := range []string{"", "x", "日本", "\xff"} {
		if got, err := edge.Text([]byte(text)); string(got) != text || err != nil {
			t.Errorf("%q: got %q and %v, want it as it is", text, got, err)
		}
	}
}

func TestAWordHasNothingAtItsEdges(t *testing.T) {
	for _, text := range []string{"word", "word\n", "word\r\n", edge.Mark + "word\r\n", " word\t"} {
		if got := edge.Word(text); got != "word" {
			t.Errorf("%q: got %q, want the word", text, got)
		}
	}
}
