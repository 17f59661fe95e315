package core

import (
	"cmp"
	"encoding/json"
	"strings"
)

// Answer is the outcome of a task as one message.
type Answer struct {
	// Text is all pieces of text, or the text of Done if there were none.
	Text string
	// Data is the structured answer, if any.
	Data      json.RawMessage
	Files     []File
	Usage     Usage
	Truncated bool
	// TokensUsed is the number in Done, or else the total of Usage.
	TokensUsed int64
	// End is KindDone, KindFailed, KindCancelled, or zero while the task runs.
	End Kind
	// Fault is why the task failed or was cancelled.
	Fault *Fault
	// Agent is the agent that answered.
	Agent AgentID
}

// Fold returns the outcome of a task, given its events, in one piece or several in order.
func Fold(pieces ...[]Event) Answer {
	var a Answer
	var text strings.Builder
	size := textBytes(pieces)
	add := func(e Event) {
		switch b := e.Body.(type) {
		case Assigned:
			a.Agent = b.Agent
		case Text:
			if len(b.Text) == size { // there is no other text
				a.Text = b.Text
				return
			}
			text.Grow(size - text.Len())
			text.WriteString(b.Text)
		case File:
			a.Files = append(a.Files, b)
		case Usage:
			a.Usage = a.Usage.Add(b)
		case Done:
			a.End, a.Data, a.Truncated, a.TokensUsed = KindDone, b.Data, b.Truncated, b.TokensUsed
			if size == 0 {
				a.Text = b.Text
			}
		case Failed:
			a.End, a.Fault = KindFailed, b.Fault
		case Cancelled:
			a.End, a.Fault = KindCancelled, NewFault(CodeCancelled, "%s", cmp.Or(b.Reason, "cancelled"))
		}
	}
	for _, events := range pieces {
		for _, e := range events {
			add(e)
		}
	}
	if text.Len() > 0 {
		a.Text = text.String()
	}
	if a.TokensUsed == 0 {
		a.TokensUsed = a.Usage.Total()
	}
	return a
}

// textBytes returns how many bytes of text events have.
func textBytes(pieces [][]Event) (size int) {
	for _, events := range pieces {
		for _, e := range events {
			if b, ok := e.Body.(Text); ok {
				size += len(b.Text)
			}
		}
	}
	return size
}
