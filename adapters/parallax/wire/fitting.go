package wire

// Fit returns a frame, without the progress in its metadata where that makes
// it larger than limit, and whether it is without.
func Fit(limit int, m *ResultMetadata, frame func() ([]byte, error)) (b []byte, without bool, err error) {
	b, err = frame()
	if err != nil || len(b) <= limit || len(m.Progress) == 0 {
		return b, false, err
	}
	m.ProgressOmitted += len(m.Progress)
	m.Progress = nil
	b, err = frame()
	return b, true, err
}

// Fit is the same for a task_error, which goes without its partial result too
// before it does not go at all.
func (e *TaskError) Fit(limit int, frame func() ([]byte, error)) (b []byte, without []string, err error) {
	b, dropped, err := Fit(limit, &e.Metadata, frame)
	if dropped {
		without = append(without, "progress")
	}
	if err != nil || len(b) <= limit || len(e.PartialResult) == 0 {
		return b, without, err
	}
	e.Omitted = &Omitted{Kind: "partialResult", Bytes: len(e.PartialResult), Reason: "it does not fit into a message"}
	e.PartialResult = nil
	b, err = frame()
	return b, append(without, "partial_result"), err
}

// Partly adds to a task_error the answer as far as it went.
func (e *TaskError) Partly(a Answer, m ResultMetadata) (err error) {
	a.Data, e.Metadata = nil, m
	if a.Text != "" || len(a.Files) > 0 {
		e.PartialResult, err = a.value()
	}
	return err
}
