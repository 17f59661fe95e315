package client

import (
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// isBlank reports whether an input says nothing yet. Agents announce a call while the model still
// writes its input: with none, with an empty object, or, as OpenCode, with the directory alone.
func isBlank(input string) bool {
	if input == "" {
		return true
	}
	v := strictjson.ParseValid([]byte(input))
	return v.Kind() == strictjson.Object && (v.Len() == 0 || v.Len() == 1 && v.Get("cwd").Exists())
}

// shown is what people decide on: the input. Where the agent does not tell it, that is what it tells
// in its place: JSON or other text (Gemini CLI does so for MCP tools), what would change, or else the
// title, such as the command of a shell.
func (tl *tool) shown() string {
	if input := tl.known(); !isBlank(input) {
		return input
	}
	var told struct {
		Content   string   `json:"content,omitempty"`
		Title     string   `json:"title,omitempty"`
		Locations []string `json:"locations,omitempty"`
	}
	told.Content = strings.Join(texts(tl.output), "\n")
	switch {
	case told.Content != "":
	case tl.input != "" || tl.title == "":
		return tl.input
	default:
		told.Title = tl.title
		for _, l := range tl.locations {
			told.Locations = append(told.Locations, l.Path)
		}
	}
	return string(strictjson.Encode(told))
}

// known is the input as far as it is known: what the agent says it is, else what stands for it, JSON or
// what would change (Codex and Gemini CLI tell no more of an edit).
func (tl *tool) known() string {
	if !isBlank(tl.input) {
		return tl.input
	}
	if said := texts(tl.output); len(said) > 0 {
		if v, err := strictjson.Parse([]byte(said[0]), strictjson.Limits{Bytes: len(said[0])}); err == nil && v.Kind() == strictjson.Object {
			return said[0]
		}
	}
	var diff []byte
	for _, c := range tl.output {
		if c.Type == wire.ToolContentDiff && c.NewText != nil {
			diff = append(diff, unified(c)...)
		}
	}
	if diff == nil {
		return tl.input
	}
	return string(strictjson.Encode(map[string]string{"diff": string(diff)}))
}
