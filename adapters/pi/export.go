package pi

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
	"github.com/dragoman-hub/dragoman/core"
)

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
		html, err := render.Page{Title: title, Cwd: header.Cwd, Began: header.Timestamp, Path: nodes}.HTML()
		if err != nil {
			return failed("Failed to export session: " + err.Error())
		}
		switch err := to.replace(html); {
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
	case !bytes.Contains(head, []byte(render.PageMark)):
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
