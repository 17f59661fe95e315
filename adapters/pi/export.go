package pi

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
	"github.com/dragoman-hub/dragoman/core"
)

//go:embed export.html
var exportPage string

var exportTemplate = template.Must(template.New("export").Parse(exportPage))

// exportMark stands in every page that was exported: only such a file is replaced.
const exportMark = `<meta name="generator" content="dragoman pi export">`

// page is what the template shows.
type page struct {
	Mark              template.HTML
	Title, Cwd, Began string
	Parts             []part
}

// part is one entry or block of a page.
type part struct {
	// Kind is user, assistant, note, tool, thinking or problem: how it looks.
	Kind string
	// Title is what is shown of a part that is folded.
	Title, Text string
	Folded      bool
	Image       template.URL
}

// exportHTML writes the conversation as one page that needs nothing else.
func exportHTML(s *Server, x *execution) outcome {
	ss := x.on
	if len(ss.tree.Context) == 0 {
		return failed("Nothing to export yet - start a conversation first")
	}
	asked, _ := x.text("outputPath")
	title, path, nodes, header := ss.tree.Name, ss.path(), ss.tree.Path(), ss.tree.Header
	if title == "" {
		title = ss.key.id
	}
	return s.work(x, func(context.Context) outcome {
		to, err := s.exportPath(x.client.scope, asked, header.Cwd, path, ss.key.id)
		if err != nil {
			return failed(err.Error())
		}
		var b bytes.Buffer
		p := page{Mark: exportMark, Title: title, Cwd: header.Cwd, Began: header.Timestamp, Parts: partsOf(nodes)}
		if began, err := time.Parse(time.RFC3339, header.Timestamp); err == nil {
			p.Began = pageTime(began)
		}
		if err := exportTemplate.Execute(&b, p); err != nil {
			return failed("Failed to export session: " + err.Error())
		}
		switch err := to.replace(b.Bytes()); {
		case errors.Is(err, errExportTaken):
			return failed("Failed to export session: " + err.Error())
		case err != nil:
			return failed("Failed to export session: " + to.path() + " cannot be written (" + plainly(err).Error() + ")")
		}
		return outcome{data: wire.Encode(map[string]string{"path": to.path()})}
	})
}

var (
	errExportName  = errors.New("outputPath must point to a .html file")
	errExportPlace = errors.New("outputPath must be under an allowed directory for this server (its working directory or that of its sessions)")
	errExportTaken = errors.New("there is a file already that was not exported here; choose another outputPath")
)

// exportPath is where the page goes: a relative path begins in the session's
// directory; without one it is there, or else beside the session's file. It reads the
// disk.
func (s *Server) exportPath(scope, asked, cwd, file, id string) (place, error) {
	if asked != "" {
		if !filepath.IsAbs(asked) {
			asked = filepath.Join(cwd, asked)
		}
		return s.exportTo(scope, asked)
	}
	name := id
	if file != "" {
		name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	}
	name = "pi-session-" + name + ".html"
	to, err := s.exportTo(scope, filepath.Join(cwd, name))
	if err != nil && file != "" {
		to, err = s.exportTo(scope, filepath.Join(filepath.Dir(file), name))
	}
	return to, err
}

func (s *Server) exportTo(scope, path string) (place, error) {
	if filepath.Ext(path) != ".html" || strings.Contains(path, "\x00") {
		return place{}, errExportName
	}
	dirs := []string{s.sessionDir(scope)}
	if scope == "" {
		dirs = append(dirs, s.opts.ExportDirs...)
	}
	path = resolve(path)
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		root := resolve(dir)
		if name, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(name) && name != "." {
			return place{root, name}, nil
		}
	}
	return place{}, errExportPlace
}

// replace writes the file, whose name may not lead out of its root, unless there is
// one that was not exported. It is there whole, or as it was before.
func (p place) replace(data []byte) error {
	switch head, err := p.read(1<<10, math.MaxInt64); {
	case errors.Is(err, fs.ErrNotExist):
		if err := p.makeRoom(); err != nil {
			return err
		}
	case err != nil:
		return err
	case !bytes.Contains(head, []byte(exportMark)):
		return errExportTaken
	}
	root, err := os.OpenRoot(p.root)
	if err != nil {
		return err
	}
	defer root.Close()
	part := filepath.Join(filepath.Dir(p.name), "."+core.NewID()+".part")
	if err = root.WriteFile(part, data, 0o600); err == nil {
		err = root.Rename(part, p.name)
	}
	if err != nil {
		_ = root.Remove(part) // which is nothing, or a half
	}
	return err
}

// partsOf returns what a page shows of a path through the tree.
func partsOf(nodes []*conversation.Node) []part {
	var all []part
	for _, n := range nodes {
		switch {
		case n.Role == conversation.RoleCompaction || n.Role == conversation.RoleBranchSummary:
			all = append(all, part{Kind: "note", Title: "summary", Text: n.Said().Spoken(), Folded: true})
		case n.Role != "":
			all = append(all, partsOfMessage(n.Said())...)
		case n.Type == sessionfile.TypeModel:
			all = append(all, part{Kind: "note", Text: "model: " + conversation.Gist(n)})
		case n.Type == sessionfile.TypeThinking:
			all = append(all, part{Kind: "note", Text: "thinking: " + conversation.Gist(n)})
		}
	}
	return all
}

// partsOfMessage is a message on a page.
func partsOfMessage(m conversation.Message) []part {
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
	_ = json.Unmarshal(m.JSON, &shape) // what is of another type is not shown
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
		// Several agents and people may talk in one conversation.
		who := cmp.Or(shape.Model, shape.From, m.Role)
		all = append(all, part{Kind: "who", Title: who, Text: pageTime(time.UnixMilli(int64(shape.Timestamp)))})
	}
	blocks := m.Blocks()
	if m.Role == conversation.RoleTool && len(blocks) == 0 { // it printed nothing, which is worth knowing
		blocks = []conversation.Block{{Type: "text"}}
	}
	for _, b := range blocks {
		p := part{Kind: kind, Folded: folded, Title: title}
		switch b.Type {
		case "text":
			p.Text = b.Text
		case "thinking":
			p = part{Kind: "thinking", Folded: true, Title: "thinking", Text: b.Thinking}
		case "toolCall":
			p = part{Kind: "tool", Folded: true, Title: b.Name, Text: indented(b.Arguments)}
		case "image":
			p.Image = picture(b)
		}
		all = append(all, p)
	}
	if shape.ErrorMessage != "" {
		all = append(all, part{Kind: "problem", Text: shape.ErrorMessage})
	}
	return all
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

// picture is the address of an image that is part of the page; "" of anything that
// is not plainly an image.
func picture(b conversation.Block) template.URL {
	if !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, b.MimeType) || !base64Text.MatchString(b.Data) {
		return ""
	}
	return template.URL("data:" + b.MimeType + ";base64," + b.Data)
}
