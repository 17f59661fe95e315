package command

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// typed is a line that a person typed, and when its Enter came. After an error there are no more.
type typed struct {
	text string
	at   time.Time
	err  error
}

// terminal shows a person what goes on, and asks them below it. Its methods may be called
// concurrently.
type terminal interface {
	// write writes to one of the streams, which both are the terminal. It may end within a line.
	write(to io.Writer, p []byte) (int, error)
	// ask shows a prompt below the output, until a line is typed or another prompt comes; "" asks for nothing.
	ask(prompt string)
	// status shows a line that changes, where nothing is asked and the output is not within a line; "" takes it away.
	status(line string)
	// lines returns what is typed.
	lines() <-chan typed
	// close takes away what is below the output. Only a read of the terminal outlives it, which nothing can end.
	close()
}

// stream is a stream of a terminal.
type stream struct {
	on terminal
	to io.Writer
}

// Write implements io.Writer.
func (s stream) Write(p []byte) (int, error) { return s.on.write(s.to, p) }

// plainTerminal is a terminal in its own line mode: the person types, corrects and interrupts as the system has it. It
// reads only once it has asked, so that a command in the background that asks for nothing goes on.
type plainTerminal struct {
	in     io.Reader
	out    io.Writer
	begin  sync.Once
	typed  chan typed
	closed chan struct{}

	mu       sync.Mutex
	inLine   bool // the output ended within a line
	prompt   string
	shown    string // what stands below the output
	changing bool   // and is a status
}

func newPlainTerminal(in io.Reader, out io.Writer) *plainTerminal {
	return &plainTerminal{in: in, out: out, typed: make(chan typed), closed: make(chan struct{})}
}

func (c *plainTerminal) write(to io.Writer, p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	c.clear()
	n, err := to.Write(p)
	c.inLine = p[len(p)-1] != '\n'
	c.draw(c.prompt, false)
	return n, err
}

func (c *plainTerminal) ask(prompt string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
	if c.prompt = prompt; prompt != "" {
		if keys, ok := c.in.(*os.File); ok {
			discardTyped(keys)
		}
		c.listen()
	}
	c.draw(prompt, false)
}

func (c *plainTerminal) status(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.prompt == "" {
		c.clear()
		c.draw(line, true)
	}
}

// draw shows a line below the output. Callers hold mu.
func (c *plainTerminal) draw(line string, changing bool) {
	if line != "" && !c.inLine {
		fmt.Fprint(c.out, line)
		c.shown, c.changing = line, changing
	}
}

// clear makes room for output. A prompt stays where it was: what was typed behind it cannot be taken away. Callers hold mu.
func (c *plainTerminal) clear() {
	switch {
	case c.shown == "":
	case c.changing:
		fmt.Fprint(c.out, clearLine)
	default:
		fmt.Fprintln(c.out)
	}
	c.shown = ""
}

// listen begins to read.
func (c *plainTerminal) listen() { c.begin.Do(func() { go c.read() }) }

func (c *plainTerminal) lines() <-chan typed { return c.typed }

// read reads lines until there are no more, or the terminal is closed.
func (c *plainTerminal) read() {
	in := bufio.NewReader(c.in)
	for {
		line, err := in.ReadString('\n')
		c.mu.Lock()
		c.shown, c.prompt = "", "" // its Enter ended the line
		c.mu.Unlock()
		select {
		case c.typed <- typed{strings.TrimRight(line, "\r\n"), time.Now(), err}:
		case <-c.closed:
			return
		}
		if err != nil {
			return
		}
	}
}

func (c *plainTerminal) close() {
	c.ask("")
	close(c.closed)
}
