package wire

import "unicode/utf8"

// PieceBytes bounds the text of one task_progress: escaped, at worst six times
// as long, it still fits into a message.
const PieceBytes = 32 << 10

// Pieces cuts text, between characters, into what fits into a message.
func Pieces(text string, each func(string) error) error {
	for len(text) > 0 {
		n := min(len(text), PieceBytes)
		for n < len(text) && n > PieceBytes-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n--
		}
		if err := each(text[:n]); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}
