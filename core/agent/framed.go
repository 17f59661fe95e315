package agent

import (
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
)

// Framed returns the turn of an agent whose frames are kept: they are told what is reported. Without
// frames it returns the turn itself.
func Framed(t Turn, frames *frame.Turn) Turn {
	if frames == nil {
		return t
	}
	return framed{t, frames}
}

type framed struct {
	Turn
	frames *frame.Turn
}

// Report implements [Turn].
func (f framed) Report(body core.Body, foreign *core.Foreign) error {
	err := f.Turn.Report(body, foreign)
	f.frames.Reported(body.Kind(), err != nil)
	return err
}
