package command_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
)

// screen is a terminal and what it was shown.
type screen struct {
	tty    *os.File
	person *os.File      // who types
	read   chan struct{} // closed once all was read that the terminal was shown

	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // closed with the next text
}

// Write takes what the terminal is shown.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.more)
	s.more = make(chan struct{})
	return s.text.Write(p)
}

// await waits until the terminal was shown what the pattern matches, and returns its submatches.
func (s *screen) await(t *testing.T, pattern string) []string {
	t.Helper()
	limit := time.After(time.Minute)
	for match := regexp.MustCompile(pattern); ; {
		s.mu.Lock()
		text, more := s.text.String(), s.more
		s.mu.Unlock()
		if found := match.FindStringSubmatch(text); found != nil {
			return found
		}
		select {
		case <-more:
		case <-limit:
			t.Fatalf("got on the terminal\n%s\nwant a match of %s", text, pattern)
		}
	}
}

// types types a text.
func (s *screen) types(t *testing.T, text string) {
	t.Helper()
	if _, err := s.person.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// resize sets the size of the terminal.
func (s *screen) resize(t *testing.T, width, height uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(s.person.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}); err != nil {
		t.Fatal(err)
	}
}

// runs runs a command line whose streams are all the terminal. Its exit code comes once the command has ended.
func (s *screen) runs(t *testing.T, args ...string) (code chan int) {
	code = make(chan int, 1)
	go func() {
		code <- command.Run(t.Context(), args, command.Streams{In: s.tty, Out: s.tty, Err: s.tty})
		_, _ = s.person.WriteString("\n") // ends the last read of the terminal
	}()
	return code
}

// shown closes the terminal and returns what it was shown.
func (s *screen) shown() string {
	_ = s.tty.Close()
	<-s.read
	return strings.ReplaceAll(s.text.String(), "\r\n", "\n")
}

func newScreen(t *testing.T) *screen {
	t.Helper()
	keeper, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("this machine has no terminals: %v", err)
	}
	t.Cleanup(func() { _ = keeper.Close() })
	var number, locked uint32
	for request, value := range map[uintptr]*uint32{syscall.TIOCGPTN: &number, syscall.TIOCSPTLCK: &locked} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, keeper.Fd(), request, uintptr(unsafe.Pointer(value))); errno != 0 {
			t.Fatal(errno)
		}
	}
	tty, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tty.Close() })
	s := &screen{tty: tty, person: keeper, read: make(chan struct{}), more: make(chan struct{})}
	go func() {
		defer close(s.read)
		_, _ = io.Copy(s, keeper) // until the terminal is closed
	}()
	return s
}

// terminal opens a terminal. The returned function closes it and returns what it was shown.
func terminal(t *testing.T) (tty *os.File, shown func() string) {
	t.Helper()
	s := newScreen(t)
	return s.tty, s.shown
}

// An answer is written to a file as it is, and to a terminal visibly, in whatever pieces it comes.
func TestAnAnswerReachesATerminalVisibly(t *testing.T) {
	var pieces []core.Body
	for _, one := range strings.SplitAfter(hostile, "") {
		pieces = append(pieces, core.Text{Text: one})
	}
	for name, bodies := range map[string][]core.Body{
		"in one piece": {core.Text{Text: hostile}, core.Done{Text: hostile}},
		"in letters":   append(pieces, core.Done{Text: hostile}),
		"at its end":   {core.Done{Text: hostile}},
	} {
		t.Run(name, func(t *testing.T) {
			hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Accept") == client.NDJSON {
					_, _ = io.WriteString(w, eventsOf(bodies...))
				}
			}))
			defer hub.Close()
			tty, shown := terminal(t)
			code := command.Run(t.Context(), []string{"ask", "x", "hello", "--hub=" + hub.URL}, command.Streams{In: io.NopCloser(strings.NewReader("")), Out: tty, Err: tty})
			text := shown()
			if code != command.ExitDone || !strings.Contains(text, "forged") {
				t.Errorf("got %d and %q, want the answer", code, text)
			}
			checkVisible(t, []string{"ask"}, text, true)
		})
	}
}

// The log of a hub that runs on a terminal has what others say in its fields.
func TestTheLogOnATerminalIsVisible(t *testing.T) {
	tty, shown := terminal(t)
	t.Setenv("NO_COLOR", "1")
	log := command.NewLog(tty, "debug", "auto")
	log.Info("an agent joined "+hostile, "agent", hostile, "error", fmt.Errorf("it said: %s", hostile), "all", []string{hostile}, "id", core.AgentID(hostile))
	text := shown()
	if !strings.Contains(text, "an agent joined") {
		t.Errorf("got %q, want the line", text)
	}
	checkVisible(t, []string{"the log"}, text, false)
}
