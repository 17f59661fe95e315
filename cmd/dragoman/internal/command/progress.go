package command

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

const (
	progressDelay = 2 * time.Second
	progressEvery = 500 * time.Millisecond
	clearLine     = "\r\x1b[K"
)

// progress shows what a command that takes long does, in one line of a terminal that is replaced, and is gone at the
// end. It shows nothing in the first two seconds, and nothing where stderr is no terminal. Its methods may be called
// concurrently.
type progress struct {
	out   io.Writer // nil shows nothing
	began time.Time
	stop  chan struct{}
	ended sync.WaitGroup

	mu   sync.Mutex
	text string
}

// startProgress begins to show on stderr. The caller calls end before it prints a result.
func startProgress(stderr io.Writer, text string) *progress {
	p := &progress{began: time.Now(), stop: make(chan struct{}), text: text}
	if !isTerminal(stderr) || os.Getenv("TERM") == "dumb" {
		return p
	}
	p.out = stderr
	p.ended.Go(func() { p.run(stderr) })
	return p
}

// say sets the text.
func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = fmt.Sprintf(format, args...)
}

// end takes the line away. It may be called more than once.
func (p *progress) end() {
	p.mu.Lock()
	if p.out != nil {
		close(p.stop)
		p.out = nil
	}
	p.mu.Unlock()
	p.ended.Wait()
}

func (p *progress) run(out io.Writer) {
	shown := false
	next := time.NewTimer(progressDelay)
	defer next.Stop()
	for {
		select {
		case <-next.C:
			fmt.Fprint(out, clearLine+p.line(widthOf(out)))
			shown = true
			next.Reset(progressEvery)
		case <-p.stop:
			if shown {
				fmt.Fprint(out, clearLine)
			}
			return
		}
	}
}

// line returns the text with the time that has passed, in less than a width.
func (p *progress) line(width int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	took := fmt.Sprintf(" (%s)", time.Since(p.began).Round(time.Second))
	text := []rune(visible(p.text))
	return string(text[:min(len(text), max(0, width-1-len(took)))]) + took
}
