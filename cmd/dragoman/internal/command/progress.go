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

// progress shows what is done, for how long already, and with what, in one line of a terminal that changes, and is gone
// at the end. It shows nothing in the first two seconds, and nothing where a terminal cannot change a line. Its methods
// may be called concurrently.
type progress struct {
	show  func(line string) // "" takes the line away
	width func() int
	began time.Time
	stop  chan struct{}
	once  sync.Once
	ended sync.WaitGroup

	mu         sync.Mutex
	what, with string
}

// startProgress begins to show on stderr. The caller calls end before it prints a result.
func startProgress(stderr io.Writer, what string) *progress {
	if !isTerminal(stderr) {
		return newProgress(nil, nil, what)
	}
	return newProgress(func(line string) { fmt.Fprint(stderr, clearLine+line) }, func() int { return widthOf(stderr) }, what)
}

// newProgress begins to show; with nil it shows nothing.
func newProgress(show func(line string), width func() int, what string) *progress {
	p := &progress{show: show, width: width, began: time.Now(), stop: make(chan struct{}), what: what}
	if show != nil && os.Getenv("TERM") != "dumb" {
		p.ended.Go(p.run)
	}
	return p
}

// say sets what is done, and with what.
func (p *progress) say(what, with string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.what, p.with = what, with
}

// end takes the line away. It may be called more than once.
func (p *progress) end() {
	p.once.Do(func() { close(p.stop) })
	p.ended.Wait()
}

func (p *progress) run() {
	shown := false
	next := time.NewTimer(progressDelay)
	defer next.Stop()
	for {
		select {
		case <-next.C:
			p.show(p.line(p.width()))
			shown = true
			next.Reset(progressEvery)
		case <-p.stop:
			if shown {
				p.show("")
			}
			return
		}
	}
}

// line returns the line, in less than a width.
func (p *progress) line(width int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := visible(p.what) + " · " + lasted(time.Since(p.began))
	if p.with != "" {
		text += " · " + visible(p.with)
	}
	return cut(text, width-1)
}

// lasted formats how long something has lasted.
func lasted(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	if s < 60 {
		return fmt.Sprintf("%d s", s)
	}
	return fmt.Sprintf("%d min %d s", s/60, s%60)
}
