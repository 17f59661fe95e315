package command

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

const (
	// mostNotices is how many notifications wait for the one before them, further ones are left out; noticeShown is
	// how long one may take, and noticeColumns how wide it is.
	mostNotices   = 8
	noticeShown   = 5 * time.Second
	noticeColumns = 80
)

// desktop rings the bell of a terminal, and shows notifications on the desktop, one after the other.
type desktop struct {
	bell  io.Writer
	texts chan string
	leave context.CancelFunc
	ended sync.WaitGroup
}

// startDesktop begins to notify. It says on stderr why the desktop shows nothing, and rings the bell there.
func startDesktop(stderr io.Writer) *desktop {
	ctx, leave := context.WithCancel(context.Background()) // until end
	d := &desktop{bell: io.Discard, texts: make(chan string, mostNotices), leave: leave}
	if isTerminal(stderr) {
		d.bell = stderr
	}
	argv := noticeCommand(runtime.GOOS)
	if path, err := exec.LookPath(argv[0]); err == nil {
		argv[0] = path
	} else {
		fmt.Fprintf(stderr, "[no notifications on the desktop: %s is not installed]\n", argv[0])
		argv = nil
	}
	d.ended.Go(func() { d.run(ctx, argv, stderr) })
	return d
}

// noticeCommand returns the command that shows a notification, whose text is one more argument: no shell and no script
// reads it, and the title of a notification has no markup.
func noticeCommand(goos string) []string {
	if goos == "darwin" {
		return []string{"osascript", "-e", "on run argv", "-e", `display notification (item 1 of argv) with title "Dragoman"`, "-e", "end run"}
	}
	return []string{"notify-send", "--app-name=Dragoman", "--"}
}

// notify rings, and shows a text. It does not wait.
func (d *desktop) notify(text string) {
	fmt.Fprint(d.bell, "\a")
	select {
	case d.texts <- cut(oneLine(text), noticeColumns):
	default:
	}
}

// run shows notifications until ctx ends. It tells only the first failure.
func (d *desktop) run(ctx context.Context, argv []string, stderr io.Writer) {
	told := false
	for {
		select {
		case text := <-d.texts:
			if argv == nil {
				continue
			}
			limited, cancel := context.WithTimeout(ctx, noticeShown)
			err := exec.CommandContext(limited, argv[0], append(argv[1:len(argv):len(argv)], text)...).Run()
			cancel()
			if err != nil && !told && ctx.Err() == nil {
				told = true
				fmt.Fprintf(stderr, "[no notification on the desktop: %s: %s]\n", argv[0], inLine(err))
			}
		case <-ctx.Done():
			return
		}
	}
}

// end ends the notifications.
func (d *desktop) end() {
	d.leave()
	d.ended.Wait()
}
