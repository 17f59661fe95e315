package core

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Prompt returns the request as text, for an agent whose dialect has no words for its other parts: the content, and
// below it each part under a heading, but for attachments and history. Structures are JSON in a fence. more are
// further parts of the caller, which stand before the hints at the end:
//
//	Who is free on Friday?
//
//	Data:
//	```json
//	{"week":12}
//	```
func (r Request) Prompt(more ...string) string {
	var parts []string
	if r.Content != "" {
		parts = append(parts, r.Content)
	}
	if n := r.Notice; n != nil {
		heading := "Notice (no answer is expected): " + n.Topic
		if n.Importance > ImportanceLow {
			heading += fmt.Sprintf(" (importance: %s)", n.Importance)
		}
		parts = append(parts, heading)
		if len(n.Data) > 0 {
			parts = append(parts, Fenced("Data", "json", n.Data))
		}
	}
	if len(r.Data) > 0 {
		parts = append(parts, Fenced("Data", "json", r.Data))
	}
	if len(r.Context) > 0 {
		parts = append(parts, Fenced("Context", "json", r.Context))
	}
	parts = append(parts, more...)
	if r.Domain != "" {
		parts = append(parts, "Domain: "+r.Domain)
	}
	if r.MaxTokens > 0 {
		parts = append(parts, fmt.Sprintf("Answer in at most %d tokens.", r.MaxTokens))
	}
	return strings.Join(parts, "\n\n")
}

// Earlier returns turns of a conversation as a part of a prompt:
// [{"role":"user","text":"..."},{"role":"assistant","agent":"a","text":"..."}] under a heading.
func Earlier(turns []Turn) string {
	type turn struct {
		Role  string  `json:"role"`
		Agent AgentID `json:"agent,omitempty"`
		Text  string  `json:"text"`
	}
	all := make([]turn, len(turns))
	for i, t := range turns {
		all[i] = turn{t.Role.String(), t.Agent, t.Text}
	}
	return Fenced("Earlier in this conversation", "json", strictjson.Encode(all))
}

// Fenced returns text under a heading, in a fence longer than any run of backticks in it.
func Fenced(heading, language string, text []byte) string {
	fence := "```"
	for bytes.Contains(text, []byte(fence)) {
		fence += "`"
	}
	return heading + ":\n" + fence + language + "\n" + string(text) + "\n" + fence
}

// maxNamed is how many files of earlier turns are named.
const maxNamed = 20

// WithoutHanded returns the request without the files of earlier turns. Its content names them.
func (r Request) WithoutHanded() Request {
	own := len(r.Attachments) - len(r.Handed)
	handed := r.Attachments[own:]
	r.Attachments, r.Handed = r.Attachments[:own], nil
	var said []string
	if r.Content != "" {
		said = append(said, r.Content)
	}
	for _, f := range handed[:min(len(handed), maxNamed)] {
		said = append(said, f.LeftOut())
	}
	if n := len(handed) - maxNamed; n > 0 {
		said = append(said, fmt.Sprintf("[%d more files of earlier turns: left out]", n))
	}
	r.Content = strings.Join(said, "\n\n")
	return r
}

// HandedWith returns the request with those files of earlier turns alone that belong to these turns: an agent that
// knows a turn already has its files.
func (r Request) HandedWith(turns []Turn) Request {
	own := len(r.Attachments) - len(r.Handed)
	files, tasks := r.Attachments[:own:own], r.Handed
	r.Handed = nil
	for i, task := range tasks {
		if slices.ContainsFunc(turns, func(t Turn) bool { return t.Task == task }) {
			files, r.Handed = append(files, r.Attachments[own+i]), append(r.Handed, task)
		}
	}
	r.Attachments = files
	return r
}

// LeftOut says to an agent that it does not get this file of an earlier turn.
func (b File) LeftOut() string {
	return fmt.Sprintf("[file %.80q (%.80q) of an earlier turn: left out]", b.Name, b.MediaType)
}
