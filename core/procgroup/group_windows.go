package procgroup

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// Lead keeps an interrupt at our console from the process of a command that is not started. It
// makes no group that could be ended: Terminate and Kill end the process alone.
func Lead(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.CreationFlags |= syscall.CREATE_NEW_PROCESS_GROUP // in the words of Windows a group is who gets an interrupt
}

// Terminate ends p at once, since Windows has no signal that asks it to. It returns
// os.ErrProcessDone if p was waited for.
func Terminate(p *os.Process) error { return p.Kill() }

// Kill ends p. The processes that it has started go on. It returns os.ErrProcessDone if p was waited for.
func Kill(p *os.Process) error { return p.Kill() }

// KillID is Kill for the process with an id. Its caller knows that the id is still that of the
// process.
func KillID(id int) error {
	p, err := os.FindProcess(id)
	if err != nil {
		return fmt.Errorf("find process %d: %w", id, err)
	}
	defer p.Release() //nolint:errcheck // only a handle is given back
	return p.Kill()
}

// SystemEnv are the variables without which programs of this system do not work: where Windows and its
// programs are, which files are programs, and where each user has files.
var SystemEnv = []string{
	"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES",
	"PROGRAMFILES(X86)", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
}

// SameEnv reports whether two names are those of one variable: Path is PATH.
func SameEnv(a, b string) bool { return strings.EqualFold(a, b) }
