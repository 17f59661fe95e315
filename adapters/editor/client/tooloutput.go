package client

import (
	"path"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// maxTerminal bounds what is kept of the output of a command, in bytes: its end.
const maxTerminal = 1 << 20

// printed adds what a command has printed, which Codex tells beside the protocol even to a client that
// has no terminals, and returns it.
func (tl *tool) printed(u wire.ToolCall) string {
	if len(u.Meta) == 0 {
		return ""
	}
	meta := strictjson.ParseValid(u.Meta)
	text, is := meta.Get("terminal_output_delta", "data").Text()
	if !is {
		text, _ = meta.Get("terminal_output", "data").Text()
	}
	if tl.terminal = append(tl.terminal, text...); len(tl.terminal) > 2*maxTerminal {
		tl.terminal = append(tl.terminal[:0], tl.terminal[len(tl.terminal)-maxTerminal:]...)
	}
	return text
}

// result returns the output as text. Agents leave what they showed before the call in its content, such
// as what it is going to change: so the raw output comes first where it is text, and else the
// text that the last update has.
func (tl *tool) result(last wire.ToolCall) string {
	raw := strictjson.ParseValid(tl.raw)
	if text, _ := raw.Text(); text != "" {
		return text
	}
	if said := texts(last.Content); len(said) > 0 {
		return strings.Join(append(said, tl.changes(last.Content)...), "\n")
	}
	switch {
	case len(tl.raw) > 0 && raw.Kind() != strictjson.String:
		return string(tl.raw)
	case len(tl.terminal) > 0:
		return strings.ToValidUTF8(string(tl.terminal[max(0, len(tl.terminal)-maxTerminal):]), "")
	}
	return strings.Join(append(texts(tl.output), tl.changes(tl.output)...), "\n")
}

// texts returns the content that is text or stands for some.
func texts(content []wire.ToolContent) (all []string) {
	for _, c := range content {
		switch {
		case c.Content == nil:
		case c.Content.Type == wire.BlockText:
			all = append(all, c.Content.Text)
		case c.Content.Type == wire.BlockResourceLink:
			all = append(all, c.Content.URI)
		case c.Content.Type == wire.BlockResource && c.Content.Resource != nil && c.Content.Resource.Text != nil:
			all = append(all, *c.Content.Resource.Text)
		}
	}
	return all
}

// changes says which files the content of a call changes that has not failed.
func (tl *tool) changes(content []wire.ToolContent) (all []string) {
	for _, c := range content {
		if c.Type == wire.ToolContentDiff && tl.state != core.ToolFailed {
			all = append(all, "Changed "+c.Path)
		}
	}
	return all
}

// files returns the diffs, images and other data among the content. A diff is a file of its own
// kind: what the agent calls the new text may be a part of the file.
func (tl *tool) files() (files []core.Body) {
	for _, c := range tl.output {
		switch {
		case c.Type == wire.ToolContentDiff && c.NewText != nil:
			files = append(files, core.File{Name: path.Base(strings.ReplaceAll(c.Path, `\`, "/")) + ".diff", MediaType: "text/x-diff", Data: unified(c)})
		case c.Content != nil:
			text := c.Content.Type == wire.BlockResource && c.Content.Resource != nil && c.Content.Resource.Text != nil
			if f, ok := fileOf(*c.Content); ok && !text {
				files = append(files, f)
			}
		}
	}
	return files
}
