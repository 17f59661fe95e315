package render

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
)

// pageHead is the page up to its title.
//
//go:embed page.html
var pageHead string

// PageMark is near the beginning of every Page, from page.html, so that an exported page can be recognised.
const PageMark = `<meta name="generator" content="dragoman pi export">`

// Page is a conversation to show as one HTML page.
type Page struct {
	Title string
	Cwd   string
	// Began is the start of the session, as in a session file.
	Began string
	// Path is the conversation, from the root of its tree.
	Path []*conversation.Node
}

// HTML returns the page. It loads no other files and has no scripts.
func (p Page) HTML() []byte {
	began := p.Began
	if t, err := time.Parse(time.RFC3339, began); err == nil {
		began = pageTime(t)
	}
	var b bytes.Buffer
	b.WriteString(pageHead)
	write(&b, "<title>%s</title>\n</head>\n<body>\n<header>\n<h1>%s</h1>\n", p.Title, p.Title)
	write(&b, "<p class=\"quiet\">%s, since %s</p>\n</header>\n<main>\n", p.Cwd, began)
	for _, part := range partsOfPath(p.Path) {
		part.write(&b)
	}
	b.WriteString("</main>\n</body>\n</html>\n")
	return b.Bytes()
}

// write writes HTML with texts in it, which it escapes. html/template would do that too, but makes the linker
// keep every exported method of the program, which is 6 MB.
func write(b *bytes.Buffer, form string, texts ...string) {
	escaped := make([]any, len(texts))
	for i, text := range texts {
		escaped[i] = html.EscapeString(text)
	}
	fmt.Fprintf(b, form, escaped...)
}

// part is an entry of a conversation, or a block of a message, on a page.
type part struct {
	// Kind is who, user, assistant, note, tool, thinking or problem. It selects the style.
	Kind string
	// Title is shown when the part is folded.
	Title, Text string
	Folded      bool
	Image       string // a data URL
}

func (p part) write(b *bytes.Buffer) {
	switch {
	case p.Kind == "who":
		write(b, "<p class=\"who\">%s <span class=\"quiet\">%s</span></p>\n", p.Title, p.Text)
	case p.Folded && p.Image != "":
		write(b, "<details class=\"%s\"><summary>%s</summary><img src=\"%s\" alt=\"image\"></details>\n", p.Kind, p.Title, p.Image)
	case p.Folded:
		write(b, "<details class=\"%s\"><summary>%s</summary><pre>%s</pre></details>\n", p.Kind, p.Title, p.Text)
	case p.Image != "":
		write(b, "<img src=\"%s\" alt=\"image\">\n", p.Image)
	default:
		write(b, "<div class=\"text %s\">%s</div>\n", p.Kind, p.Text)
	}
}

// partsOfPath returns the parts of a path through the tree.
func partsOfPath(nodes []*conversation.Node) []part {
	var all []part
	for _, n := range nodes {
		switch {
		case n.Role == conversation.RoleCompaction || n.Role == conversation.RoleBranchSummary:
			all = append(all, part{Kind: "note", Title: "summary", Text: n.ContextMessage().PlainText(), Folded: true})
		case n.Role != "":
			all = append(all, partsOf(n.ContextMessage())...)
		case n.Type == sessionfile.TypeModel:
			all = append(all, part{Kind: "note", Text: "model: " + conversation.Describe(n)})
		case n.Type == sessionfile.TypeThinking:
			all = append(all, part{Kind: "note", Text: "thinking: " + conversation.Describe(n)})
		}
	}
	return all
}

// partsOf returns the parts of a message.
func partsOf(m conversation.Message) []part {
	var shape struct {
		ToolName     string  `json:"toolName"`
		Model        string  `json:"model"`
		From         string  `json:"from"`
		IsError      bool    `json:"isError"`
		ErrorMessage string  `json:"errorMessage"`
		Command      string  `json:"command"`
		Output       string  `json:"output"`
		ExitCode     int     `json:"exitCode"`
		Cancelled    bool    `json:"cancelled"`
		CustomType   string  `json:"customType"`
		Timestamp    float64 `json:"timestamp"`
	}
	_ = json.Unmarshal(m.JSON, &shape) // members of other types are not shown
	kind, folded, title := m.Role, false, ""
	switch m.Role {
	case conversation.RoleTool:
		kind, folded, title = "tool", true, "result of "+shape.ToolName
		if shape.IsError {
			title += ", an error"
		}
	case conversation.RoleBash:
		title = "$ " + shape.Command
		switch {
		case shape.Cancelled:
			title += " (cancelled)"
		case shape.ExitCode != 0:
			title += fmt.Sprintf(" (exit code %d)", shape.ExitCode)
		}
		return []part{{Kind: "tool", Folded: true, Title: title, Text: shape.Output}}
	case conversation.RoleCustom:
		kind, title = "note", shape.CustomType
	}
	var all []part
	if m.Role == conversation.RoleUser || m.Role == conversation.RoleAssistant {
		// A conversation may have several agents and users.
		who := cmp.Or(shape.Model, shape.From, m.Role)
		all = append(all, part{Kind: "who", Title: who, Text: pageTime(time.UnixMilli(int64(shape.Timestamp)))})
	}
	blocks := m.Blocks()
	if m.Role == conversation.RoleTool && len(blocks) == 0 { // show also a result without output
		blocks = []conversation.Block{{Type: "text"}}
	}
	for _, b := range blocks {
		all = append(all, partOf(b, part{Kind: kind, Folded: folded, Title: title}))
	}
	if shape.ErrorMessage != "" {
		all = append(all, part{Kind: "problem", Text: shape.ErrorMessage})
	}
	return all
}

// partOf returns a block as a part, which begins as p does unless the block is of a kind of its own.
func partOf(b conversation.Block, p part) part {
	switch b.Type {
	case "text":
		p.Text = b.Text
	case "thinking":
		return part{Kind: "thinking", Folded: true, Title: "thinking", Text: b.Thinking}
	case "toolCall":
		return part{Kind: "tool", Folded: true, Title: b.Name, Text: indented(b.Arguments)}
	case "image":
		p.Image = picture(b)
	}
	return p
}

func pageTime(t time.Time) string { return t.UTC().Format(time.DateTime) + " UTC" }

func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

var base64Text = regexp.MustCompile(`^[A-Za-z0-9+/]+=*$`)

// picture returns the data URL of an image, or "" if the block is not a valid image of a
// known type.
func picture(b conversation.Block) string {
	if !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, b.MimeType) || !base64Text.MatchString(b.Data) {
		return ""
	}
	return "data:" + b.MimeType + ";base64," + b.Data
}
