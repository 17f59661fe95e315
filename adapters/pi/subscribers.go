package pi

import "slices"

// subscribers are the connections that see a session. They are replaced, never changed.
type subscribers []*connection

// tell sends a frame to all subscribers.
func (all subscribers) tell(frame []byte) {
	for _, c := range all {
		c.push(item{frame: frame})
	}
}

// tellStep has all subscribers told a step.
func (all subscribers) tellStep(st *step) {
	for _, c := range all {
		c.push(item{step: st})
	}
}

// tellBehind sends a frame to all subscribers, to each once it has been told the step.
func (all subscribers) tellBehind(st *step, frame []byte) {
	for _, c := range all {
		c.push(item{fence: st})
		c.push(item{frame: frame})
	}
}

// without returns the connections but for one.
func without[S ~[]*connection](all S, c *connection) S {
	return slices.DeleteFunc(slices.Clone(all), func(other *connection) bool { return other == c })
}
