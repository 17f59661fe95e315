package supervisor

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/procgroup"
)

// markVariable is the variable that all processes of a hub inherit, by which its guard finds
// those that have left their process group.
const markVariable = "CHILD_OF_DRAGOMAN"

// Guard is a process that ends the children of this program if it is killed: its stdin is a
// lifeline. It is started with the first child. A nil Guard does nothing.
type Guard struct {
	// Command is the command line that runs [RunGuard]; the mark is appended.
	Command []string

	once     sync.Once
	id       string
	mu       sync.Mutex
	lifeline io.WriteCloser
	done     chan struct{}
}

// NewGuard returns a Guard that is run by a command line of this program.
func NewGuard(command ...string) *Guard { return &Guard{Command: command, id: core.NewID()} }

// Mark adds the mark to an environment, by which the guard finds processes that have left their
// group.
func (g *Guard) Mark(env []string) []string {
	if g == nil {
		return env
	}
	return append(env, markVariable+"="+g.id)
}

// Watch makes the guard end the process group of a child that leads one, until exited is closed.
func (g *Guard) Watch(pid int, exited <-chan struct{}) {
	if g == nil {
		return
	}
	g.once.Do(g.start)
	g.tell('+', pid)
	go func() {
		<-exited
		g.tell('-', pid)
	}()
}

// start starts the guard. Without one, children are ended by this program alone.
func (g *Guard) start() {
	g.done = make(chan struct{})
	cmd := exec.Command(g.Command[0], append(g.Command[1:len(g.Command):len(g.Command)], g.id)...) //nolint:gosec // our own program
	procgroup.Lead(cmd)                                                                            // a signal for our group is not for the guard
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		close(g.done)
		return
	}
	g.mu.Lock()
	g.lifeline = in
	g.mu.Unlock()
	go func() {
		defer close(g.done)
		_ = cmd.Wait()
	}()
}

func (g *Guard) tell(sign byte, pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lifeline != nil {
		_, _ = fmt.Fprintf(g.lifeline, "%c%d\n", sign, pid) // a guard that died guards no more
	}
}

// Close ends the guard and with it every process that is left.
func (g *Guard) Close() {
	if g == nil {
		return
	}
	g.once.Do(func() { g.done = make(chan struct{}); close(g.done) })
	g.mu.Lock()
	if g.lifeline != nil {
		_ = g.lifeline.Close()
		g.lifeline = nil
	}
	g.mu.Unlock()
	<-g.done
}

// RunGuard is the process of a Guard: it reads lines +PID and -PID and, when its stdin ends,
// kills the process groups that were added and not removed, and every process that has the mark
// in its environment. On Windows, which has neither, it ends the added processes alone. The
// process must do nothing else.
func RunGuard(mark string, in io.Reader) {
	groups := map[int]struct{}{}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		text := lines.Text()
		pid, err := strconv.Atoi(strings.TrimLeft(text, "+-"))
		if err != nil || pid <= 1 {
			continue
		}
		if text[0] == '+' {
			groups[pid] = struct{}{}
		} else {
			delete(groups, pid)
		}
	}
	for pid := range groups {
		_ = procgroup.KillID(pid) // it may have ended
	}
	endMarked(markVariable + "=" + mark)
}
