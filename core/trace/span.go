package trace

import "time"

// Span is one span, ready to be exported.
type Span struct {
	Trace  [16]byte
	ID     [8]byte
	Parent [8]byte // zero for a root
	State  string  // the tracestate
	Name   string
	// IsClient says that it is of kind CLIENT, else INTERNAL.
	IsClient   bool
	Start, End time.Time
	Attributes []Attribute
	Moments    []Moment
	Links      []Link
	// Failed says that it ended with an error, and Message why; "" without content.
	Failed  bool
	Message string
}

// Attribute is an attribute of a span. Value is a string, an int64, a bool or a []string.
type Attribute struct {
	Key   string
	Value any
}

// Moment is an event within a span.
type Moment struct {
	Name       string
	At         time.Time
	Attributes []Attribute
}

// Link is a link to a span that is not above: of another trace, or of a call that steered.
type Link struct {
	Trace [16]byte
	ID    [8]byte
}
