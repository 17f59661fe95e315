package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// lineEditor is a terminal on which the person edits a line and goes through those before, while the output goes on
// above it.
type lineEditor struct {
	in        *os.File
	out       io.Writer
	before    *term.State
	line      *term.Terminal
	interrupt func()
	keys      chan []byte
	rest      []byte        // of the last keys
	redraw    chan struct{} // the prompt has changed
	typed     chan typed
	closed    chan struct{}

	mu     sync.Mutex
	prompt string
	inLine bool // the output ended within a line
}

// errRedraw ends a read: the next one begins with the prompt.
var errRedraw = errors.New("another prompt")

// What the keys are where the terminal makes no signal of them.
const (
	keyInterrupt = 3
	keyClear     = 21
)

// maxTyped is how many characters a line may have: the library leaves out what is beyond.
const maxTyped = 4096

// newLineEditor takes a terminal over. interrupt is called for each Ctrl-C.
func newLineEditor(in *os.File, out io.Writer, interrupt func()) *lineEditor {
	e := &lineEditor{in: in, out: out, interrupt: interrupt, keys: make(chan []byte), redraw: make(chan struct{}, 1), typed: make(chan typed), closed: make(chan struct{})}
	e.before, _ = term.MakeRaw(int(in.Fd())) // where that fails, whole lines come
	e.line = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{e, out}, "")
	e.line.SetBracketedPasteMode(true)
	go e.readKeys()
	go e.readLines()
	return e
}

func (e *lineEditor) write(_ io.Writer, p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	e.inLine = p[len(p)-1] != '\n'
	if e.inLine {
		e.line.SetPrompt("") // it would stand in the middle of the output
	} else {
		e.line.SetPrompt(e.prompt)
	}
	n, err := e.line.Write(p)
	e.draw()
	return n, err
}

func (e *lineEditor) ask(prompt string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.prompt = prompt
	e.show(prompt)
}

func (e *lineEditor) status(line string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.prompt == "" && !e.inLine {
		if line != "" {
			line += " "
		}
		e.show(line)
	}
}

// show shows a prompt. Callers hold mu.
func (e *lineEditor) show(prompt string) {
	_ = e.line.SetSize(sizeOf(e.out))
	e.line.SetPrompt(prompt)
	_, _ = e.line.Write(nil) // draws it in place of the one before, if there is any
	e.draw()
}

// draw has the next read draw the prompt, if none is there.
func (e *lineEditor) draw() {
	select {
	case e.redraw <- struct{}{}:
	default:
	}
}

func (e *lineEditor) lines() <-chan typed { return e.typed }

// readKeys reads what is typed until there is no more, or the terminal is closed.
func (e *lineEditor) readKeys() {
	defer close(e.keys)
	for {
		keys := make([]byte, 256)
		n, err := e.in.Read(keys)
		for i, key := range keys[:n] {
			if key == keyInterrupt {
				keys[i] = keyClear
				e.interrupt()
			}
		}
		select {
		case e.keys <- keys[:n]:
		case <-e.closed:
			return
		}
		if err != nil {
			return
		}
	}
}

// Read implements io.Reader for the library.
func (e *lineEditor) Read(p []byte) (int, error) {
	if len(e.rest) == 0 {
		select {
		case keys, ok := <-e.keys:
			if !ok {
				return 0, io.EOF
			}
			e.rest = keys
		case <-e.redraw:
			return 0, errRedraw
		case <-e.closed:
			return 0, io.EOF
		}
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// readLines reads lines until there are no more. Pasted ones are one with the line that is typed after them.
func (e *lineEditor) readLines() {
	pasted := ""
	for {
		text, err := e.line.ReadLine()
		switch {
		case errors.Is(err, errRedraw):
			continue
		case errors.Is(err, term.ErrPasteIndicator):
			pasted += text + "\n"
			continue
		case utf8.RuneCountInString(text) >= maxTyped:
			text, pasted = "", ""
			_, _ = fmt.Fprintf(stream{e, e.out}, "[a line has at most %d characters, and nothing was asked: put it into a file, and ask with 'dragoman ask AGENT @FILE --thread ID']\n", maxTyped)
		}
		e.mu.Lock()
		e.prompt, e.inLine = "", false
		e.line.SetPrompt("")
		e.mu.Unlock()
		line := typed{text: pasted + text, at: time.Now(), err: err}
		pasted = ""
		select {
		case e.typed <- line:
		case <-e.closed:
			return
		}
		if err != nil {
			return
		}
	}
}

func (e *lineEditor) close() {
	e.ask("")
	e.line.SetBracketedPasteMode(false)
	close(e.closed)
	if e.before != nil {
		_ = term.Restore(int(e.in.Fd()), e.before)
	}
}
