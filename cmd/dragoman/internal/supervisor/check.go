package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
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
		_, err := l.command(context.Background(), p)
		var why *startError
		if errors.As(err, &why) {
			all = append(all, Finding{why.member, why.text, false})
		} else if err != nil {
			all = append(all, Finding{"cwd", err.Error(), false})
		}
	}
	for i, v := range p.Env {
		name, _, sets := strings.Cut(v, "=")
		if _, set := os.LookupEnv(name); !set && !sets {
			all = append(all, Finding{fmt.Sprintf("env[%d]", i), name + " is not set here: export it first, or write " + name + "=value", true})
		}
	}
	if _, err := tokenOf(r.TokenFile); err != nil {
		all = append(all, Finding{"token_file", plainly(err) + "; write the token into a file that only the hub may read", false})
	} else if text := Exposed(r.TokenFile); text != "" {
		all = append(all, Finding{"token_file", text, true})
	}
	return all
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
// there is none. On Windows it is always "", since it looks at modes alone.
func Exposed(path string) string {
	if path == "" {
		return ""
	}
	mode, may := Allows(path, 0o077)
	if !may {
		return ""
	}
	return fmt.Sprintf("other users may read %s (mode %04o): run chmod 600 on it", path, mode)
}
