package wire

import "github.com/dragoman-hub/dragoman/core/strictjson"

// Settlement is a data part by which a client of a hub settles what a task waits for: an approval
// or a question.
type Settlement struct {
	Approval *Decision `json:"approval,omitempty"`
	Answer   *Answer   `json:"answer,omitempty"`
}

// Decision decides an approval.
type Decision struct {
	ID       string `json:"id"`
	Approved *bool  `json:"approved"`
	All      bool   `json:"all,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// InputSHA256 is that of the input which was decided on, if the client says it.
	InputSHA256 string `json:"input_sha256,omitempty"`
}

// Answer answers a question.
type Answer struct {
	ID        string   `json:"id"`
	Selected  []string `json:"selected,omitempty"`
	Text      string   `json:"text,omitempty"`
	Dismissed bool     `json:"dismissed,omitempty"`
}

// Part returns the part of a message.
func (s Settlement) Part() Part { return DataPart(strictjson.Encode(s)) }
