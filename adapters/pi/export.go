package pi

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
)

// exportHTML writes the conversation to a file, as one page of HTML.
func exportHTML(s *Server, x *request) command.Outcome {
	ss := x.on
	if len(ss.tree.Context) == 0 {
		return command.Failed("Nothing to export yet - start a conversation first")
	}
	asked, _ := x.Text("outputPath")
	title, path, nodes, header := ss.tree.Name, ss.file.Path(), ss.tree.Path(), ss.tree.Header
	if title == "" {
		title = ss.key.ID
	}
	return x.Work(s.jobs, func(context.Context) command.Outcome {
		to, err := exportPath(s.store, x.client.Scope, asked, header.Cwd, path, ss.key.ID)
		if err != nil {
			return command.Failed(err.Error())
		}
		html, err := render.Page{Title: title, Cwd: header.Cwd, Began: header.Timestamp, Path: nodes}.HTML()
		if err != nil {
			return command.Failed("Failed to export session: " + err.Error())
		}
		switch err := to.Replace(html, render.PageMark); {
		case errors.Is(err, conversation.ErrTaken):
			return command.Failed("Failed to export session: " + err.Error())
		case err != nil:
			return command.Failed("Failed to export session: " + to.Path() + " cannot be written (" + conversation.PlainError(err).Error() + ")")
		}
		return command.Outcome{Data: wire.Encode(map[string]string{"path": to.Path()})}
	})
}

var (
	errExportName  = errors.New("outputPath must point to a .html file")
	errExportPlace = errors.New("outputPath must be under an allowed directory for this server (its working directory or that of its sessions)")
)

// exportPath returns where the page goes. A path that was asked for is relative to the
// session's directory; without one the page goes there if that is allowed, else beside the
// session's file. It reads the disk.
func exportPath(store *conversation.Store, scope, asked, cwd, file, id string) (conversation.Place, error) {
	if asked != "" {
		if !filepath.IsAbs(asked) {
			asked = filepath.Join(cwd, asked)
		}
		return exportTo(store, scope, asked)
	}
	name := id
	if file != "" {
		name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	}
	name = "pi-session-" + name + ".html"
	to, err := exportTo(store, scope, filepath.Join(cwd, name))
	if err != nil && file != "" {
		to, err = exportTo(store, scope, filepath.Join(filepath.Dir(file), name))
	}
	return to, err
}

func exportTo(store *conversation.Store, scope, path string) (conversation.Place, error) {
	if filepath.Ext(path) != ".html" || strings.Contains(path, "\x00") {
		return conversation.Place{}, errExportName
	}
	to, ok := store.ExportPlace(scope, path)
	if !ok {
		return to, errExportPlace
	}
	return to, nil
}
