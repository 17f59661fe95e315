package client

import (
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
	if !isBlank(tl.input) {
		return tl.input
	}
	var told struct {
		Diff      string   `json:"diff,omitempty"`
		Content   string   `json:"content,omitempty"`
		Title     string   `json:"title,omitempty"`
		Locations []string `json:"locations,omitempty"`
	}
	for _, text := range texts(tl.output) {
		if v, err := strictjson.Parse([]byte(text), strictjson.Limits{Bytes: len(text)}); err == nil && v.Kind() == strictjson.Object && told.Content == "" {
			return text
		}
		told.Content += text
	}
	for _, c := range tl.output {
		if c.Type == wire.ToolContentDiff && c.NewText != nil {
			told.Diff += string(unified(c))
		}
	}
	switch {
	case told.Diff != "" || told.Content != "":
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
