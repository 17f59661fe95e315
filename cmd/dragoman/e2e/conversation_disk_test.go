package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// onDisk returns the real path of a path in the conversation.
func (p *player) onDisk(path string) (string, error) {
	if p.disk == "" {
		if p.pi != nil {
			return "", errors.New("the disk must be there before the first pi client")
		}
		var err error
		if p.disk, err = filepath.EvalSymlinks(p.t.TempDir()); err != nil {
			return "", err
		}
	}
	text, err := p.bindings.fillText(path)
	if err != nil {
		return "", err
	}
	path = p.disk + text
	return path, os.MkdirAll(filepath.Dir(path), 0o700)
}

func (p *player) writeFile(st *step, m []string) error {
	path, err := p.onDisk(m[0])
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(st.body), 0o600)
}

func (p *player) makeDirectory(_ *step, m []string) error {
	path, err := p.onDisk(m[0])
	if err != nil {
		return err
	}
	return os.MkdirAll(path, 0o700)
}

func (p *player) makeLink(_ *step, m []string) error {
	path, err := p.onDisk(m[0])
	if err != nil {
		return err
	}
	return os.Symlink(filepath.Join(p.disk, m[1]), path)
}

// checkFile compares the lines of a file with the step.
func (p *player) checkFile(st *step, m []string) error {
	path, err := p.onDisk(m[0])
	if err != nil {
		return err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var lines []*jsonValue
	for line := range bytes.Lines(data) {
		v, err := parseJSON(line)
		if err != nil {
			return err
		}
		lines = append(lines, p.withoutDisk(v))
	}
	return p.check(st, lines, false)
}

// withoutDisk returns the value with its paths as the conversation has them.
func (p *player) withoutDisk(v *jsonValue) *jsonValue {
	out, _ := v.change(func(s *jsonValue) (*jsonValue, error) {
		return textValue(strings.ReplaceAll(s.text, p.disk, "")), nil
	})
	return out
}

// paths are the members of a command that hold paths.
var paths = []string{"sessionPath", "cwd", "outputPath", "parentSession"}

// diskEnd is a client's end in a conversation that has files.
type diskEnd struct {
	peerEnd
	player *player
}

func (e diskEnd) send(ctx context.Context, v *jsonValue) error {
	out := &jsonValue{open: v.open, text: v.text, keys: v.keys, items: slices.Clone(v.items)}
	for i, key := range out.keys {
		if path := out.items[i]; slices.Contains(paths, key) && path.open == '"' && filepath.IsAbs(path.text) {
			out.items[i] = textValue(e.player.disk + path.text)
		}
	}
	return e.peerEnd.send(ctx, out)
}

func (e diskEnd) receive(ctx context.Context) (*jsonValue, error) {
	v, err := e.peerEnd.receive(ctx)
	if err != nil {
		return nil, err
	}
	return e.player.withoutDisk(v), nil
}
