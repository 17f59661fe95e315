package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// Finding is what is wrong with a member of an agent or a pack of the settings, and what to do.
type Finding struct {
	Member string // as in the settings: command, env[0]
	Text   string
	// Warning says that it may work as it is.
	Warning bool
}

// Check returns what keeps an agent or a pack from being started, or probably from working, as
// far as that can be seen without starting it: programs, directories, files and variables.
func Check(p config.Process, r config.Remote) (all []Finding) {
	l := &Launcher{}
	if len(p.Command) > 0 {
		if _, err := l.command(context.Background(), p); err != nil {
			all = append(all, refused(p, err))
		}
	}
	for i, v := range p.Env {
		name, _, sets := strings.Cut(v, "=")
		if _, set := os.LookupEnv(name); !set && !sets {
			all = append(all, Finding{fmt.Sprintf("env[%d]", i), name + " is not set here: set it before the hub starts, or write " + name + "=value", true})
		}
	}
	if _, err := tokenOf(r.TokenFile); err != nil {
		all = append(all, Finding{"token_file", plainly(err) + "; write the token into a file that only the hub may read", false})
	} else if text := Exposed(r.TokenFile); text != "" {
		all = append(all, Finding{"token_file", text, true})
	}
	return all
}

// refused says why a process cannot be started.
func refused(p config.Process, err error) Finding {
	var dir *directoryError
	switch {
	case errors.As(err, &dir):
		return Finding{"cwd", fmt.Sprintf("%s: %s; make the directory, or name another", dir.path, dir.err), false}
	case errors.Is(err, exec.ErrNotFound):
		return Finding{"command", p.Command[0] + " is not found in PATH: install it, or write its whole path", false}
	case errors.Is(err, fs.ErrNotExist):
		return Finding{"command", p.Command[0] + ": there is no such file: write its whole path, or one relative to cwd", false}
	case errors.Is(err, fs.ErrPermission):
		return Finding{"command", p.Command[0] + " is not executable: run chmod +x on it, or name its interpreter first", false}
	}
	return Finding{"command", err.Error(), false}
}

// plainly returns an error about a file without the name of the system call.
func plainly(err error) string {
	var of *fs.PathError
	if errors.As(err, &of) {
		return fmt.Sprintf("%s: %s", of.Path, of.Err)
	}
	return err.Error()
}

// Exposed says that others may read a file with a secret, and what to do; "" if they may not, or
// there is none.
func Exposed(path string) string {
	path, err := config.ExpandHome(path)
	if err != nil || path == "" {
		return ""
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return ""
	}
	return fmt.Sprintf("other users may read %s (mode %04o): run chmod 600 on it", path, info.Mode().Perm())
}
