package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core/edge"
)

// settingsFile is the file that something is added to.
type settingsFile struct {
	path     string
	data     []byte
	settings config.Config
	hubs     []service.Running // that read it
	named    string            // the flag or the variable that names it
}

// fileToAdd reads the settings file that dragoman add writes.
func fileToAdd(c *cobra.Command) (f settingsFile, err error) {
	path, named := config.NamedFile(c.Flags(), os.Environ())
	f.named = named
	running, err := service.RunningHubs()
	if err != nil {
		return f, err
	}
	switch files := filesOf(running); {
	case path != "":
		path, err = config.ExpandHome(path)
	case len(files) == 1:
		path = files[0]
	case len(files) > 1:
		return f, usagef("several hubs of yours run here: name the file of one with --config: %s", strings.Join(files, ", "))
	default:
		path = cmp.Or(config.FoundFile(os.Environ()), config.FileName)
	}
	if err == nil {
		f.path, err = filepath.Abs(path)
	}
	if err != nil {
		return f, err
	}
	f.hubs = slices.DeleteFunc(running, func(r service.Running) bool { return r.File != f.path })
	f.data, err = edge.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = c.Flags().Set("config", f.path)
	}
	if err != nil {
		return f, err
	}
	if f.settings, err = config.Load(c.Flags(), os.Environ()); err != nil {
		return f, wrongSettings(err)
	}
	return f, nil
}

// filesOf returns the settings files of hubs, each once.
func filesOf(hubs []service.Running) (all []string) {
	for _, h := range hubs {
		all = append(all, h.File)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// add adds an entry to the file, and lets the hubs that read it take it.
func (f settingsFile) add(ctx context.Context, io Streams, e newEntry) error {
	there := map[string][]string{"agents": f.settings.Agents.Names(), "packs": f.settings.Packs.Names()}[e.list]
	if i := slices.Index(there, e.name); i >= 0 {
		return usagef("%s: %s is there already: remove it, or choose another name", f.settings.At(fmt.Sprintf("%s[%d]", e.list, i)), e.name)
	}
	if here, err := os.Getwd(); err == nil && len(f.hubs) > 0 && f.hubs[0].Dir != here && len(e.process.Command) > 0 {
		e.process.Dir = here // and not where the hub was started
	}
	if err := e.check(io.Err); err != nil {
		return err
	}
	text, err := config.EntryText(e.value)
	if err != nil {
		return err
	}
	extended, err := config.AddEntry(f.data, e.list, text)
	if errors.Is(err, config.ErrByHand) {
		return wrongSettings(fmt.Errorf("%s: %w: write this into it, below %s\n  - %s", f.path, err, e.list, text))
	}
	if err == nil {
		err = replaceFile(f.path, extended)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, config.Bare(err))
	}
	fmt.Fprintf(io.Out, "%s is in %s:\n  - %s\n", e.name, visible(fromHere(f.path)), visible(text))
	if e.note != "" {
		fmt.Fprintln(io.Out, "note: "+e.note)
	}
	return f.tellHubs(ctx, io, e)
}

// fromHere returns a path as it is called in the working directory, if it is below that.
func fromHere(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	if below, err := filepath.Rel(here, path); err == nil && filepath.IsLocal(below) {
		return below
	}
	return path
}

// tellHubs lets the hubs that run take the settings, and says what becomes of an agent, and what to type next.
func (f settingsFile) tellHubs(ctx context.Context, io Streams, e newEntry) error {
	try := self() + " ask " + quoted(e.name) + " hello"
	if e.list == "packs" {
		try = self() + " packs " + quoted(e.name)
	}
	if len(f.hubs) == 0 {
		serve := self() + " serve"
		if f.named != config.VariablePrefix+"CONFIG" && absolute(config.FoundFile(os.Environ())) != f.path {
			serve += " --config " + quoted(f.path)
		}
		_, err := fmt.Fprintf(io.Out, "next: '%s', and in another terminal '%s'\n", serve, try)
		return err
	}
	for _, h := range f.hubs {
		process, err := os.FindProcess(h.PID)
		if err == nil {
			err = process.Signal(syscall.SIGHUP)
		}
		if err != nil {
			return fmt.Errorf("the hub (process %d) cannot be told: %w; start it again", h.PID, err)
		}
	}
	for _, v := range e.process.Env {
		if !strings.Contains(v, "=") {
			fmt.Fprintf(io.Out, "%s comes from the hub: if it was started without it, start it again\n", visible(v))
		}
	}
	if e.list == "packs" {
		_, err := fmt.Fprintf(io.Out, "the hub takes it; next: '%s'\n", try)
		return err
	}
	for _, h := range f.hubs {
		if err := tellStarted(ctx, io, h, e.name); err != nil {
			return err
		}
	}
	return nil
}

// replaceFile writes a file as a whole. One that is there keeps its mode, its owner where that is possible, and the
// links that lead to it.
func replaceFile(path string, data []byte) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".dragoman-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }() // unless it has become the file
	if _, err = temp.Write(data); err == nil {
		err = temp.Sync()
	}
	if info, old := os.Stat(path); err == nil && old == nil {
		err = keepOwner(temp, info)
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}
