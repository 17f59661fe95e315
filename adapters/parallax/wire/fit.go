package wire

import (
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core"
)

// PieceBytes is the maximum text of one task_progress. Escaping makes it at most six
// times as long, which still fits into a message.
const PieceBytes = 32 << 10

// Pieces calls each with consecutive pieces of text, split between characters, that
// fit into a message.
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

// Fit returns a frame. If it is larger than limit, the progress in its metadata is
// dropped, which Fit reports.
func Fit(limit int, m *ResultMetadata, frame func() ([]byte, error)) (b []byte, dropped bool, err error) {
	b, err = frame()
	if err != nil || len(b) <= limit || len(m.Progress) == 0 {
		return b, false, err
	}
	m.ProgressOmitted += len(m.Progress)
	m.Progress = nil
	b, err = frame()
	return b, true, err
}

// Fit is the same for a task_error, which may drop its partial result too. It names
// what was dropped.
func (e *TaskError) Fit(limit int, frame func() ([]byte, error)) (b []byte, dropped []string, err error) {
	b, progress, err := Fit(limit, &e.Metadata, frame)
	if progress {
		dropped = append(dropped, "progress")
	}
	if err != nil || len(b) <= limit || len(e.PartialResult) == 0 {
		return b, dropped, err
	}
	e.Omitted = &Omitted{Kind: "partialResult", Bytes: len(e.PartialResult), Reason: "it does not fit into a message"}
	e.PartialResult = nil
	b, err = frame()
	return b, append(dropped, "partial_result"), err
}

// SetPartial adds the answer so far to a task_error.
func (e *TaskError) SetPartial(a core.Answer, m ResultMetadata) (err error) {
	a.Data, e.Metadata = nil, m
	if a.Text != "" || len(a.Files) > 0 {
		e.PartialResult, err = EncodeResult(a)
	}
	return err
}
