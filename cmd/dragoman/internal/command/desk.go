package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
)

// matter is something that waits for a person: a tool call to approve, or a question to answer.
type matter struct {
	id      string
	text    string // what it is about, in lines; "" if the prompt says all
	prompt  string // what may be typed once all of the text was on the screen
	partial string // what may be typed before, beside showing the rest; "" for nothing
	// take does what a line says, which is never empty unless it ends one of several; whole says that all of the text
	// was on the screen. It returns errMore if it wants another line, and a [client.Refusal] of the hub.
	take func(ctx context.Context, line string, whole bool) (done string, err error)

	rest    string // of the text, not on the screen yet
	several bool   // it has taken a line, and wants more
}

// errMore says that a matter wants another line.
var errMore = errors.New("another line")

// desk puts what waits before a person, one after the other, and does what they type. It decides on nothing that was
// not on the screen as a whole before its line was typed. Its methods may be called concurrently.
type desk struct {
	say  func(text string)   // prints lines
	ask  func(prompt string) // as of a terminal
	size func() (width, height int)
	skip bool // an empty line leaves a matter for later

	mu      sync.Mutex
	waiting []*matter
	shown   time.Time // when the first of them was put, or put again
}

// speak changes what prints lines.
func (d *desk) speak(say func(text string)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.say = say
}

// put adds a matter.
func (d *desk) put(m *matter) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting = append(d.waiting, m); len(d.waiting) == 1 {
		d.present()
	}
}

// settle takes away the matters of which one that is for nobody here any more, as others have decided them.
func (d *desk) settle(gone func(id string) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first := d.first()
	d.waiting = slices.DeleteFunc(d.waiting, func(m *matter) bool { return gone(m.id) })
	if d.first() != first {
		d.present()
	}
}

// busy reports whether something waits.
func (d *desk) busy() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.waiting) > 0
}

func (d *desk) first() *matter {
	if len(d.waiting) == 0 {
		return nil
	}
	return d.waiting[0]
}

// present puts the first matter, if any, with as much of its text as fits on the screen. Callers hold mu.
func (d *desk) present() {
	m := d.first()
	if m == nil {
		d.ask("")
		return
	}
	width, height := d.size()
	const around = 3 // rows: what was before, and the prompt
	rows := rowsOf(m.text, width)
	fit := min(len(rows), max(height-around, 1))
	m.rest = strings.Join(rows[fit:], "")
	d.show(strings.Join(rows[:fit], ""), m)
}

// show shows a text, and asks about a matter. Callers hold mu.
func (d *desk) show(text string, m *matter) {
	if text != "" {
		d.ask("")
		d.say(strings.TrimSuffix(text, "\n"))
	}
	d.shown = time.Now()
	prompt := m.prompt
	if m.rest != "" {
		prompt = fmt.Sprintf("… and %d more characters: %s[s]how all: ", len([]rune(m.rest)), m.partial)
	}
	if d.skip {
		prompt = strings.TrimSuffix(prompt, ": ") + ", or Enter for later: "
	}
	d.ask(prompt)
}

// take does what a person typed.
func (d *desk) take(ctx context.Context, line typed) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.first()
	switch {
	case m == nil:
		return
	case !line.at.After(d.shown):
		d.show("", m)
		return
	}
	word := strings.TrimSpace(line.text)
	switch {
	case m.rest != "" && isWord(word, "show"):
		rest := m.rest
		m.rest = ""
		d.show(rest, m)
		return
	case word == "" && !m.several:
		if d.skip {
			d.next("")
			return
		}
		d.show("", m)
		return
	}
	done, err := m.take(ctx, word, m.rest == "")
	switch refused := (client.Refusal{}); {
	case errors.Is(err, errMore):
		m.several = true
		d.ask("")
	case errors.As(err, &refused) && refused.Fault.Code != core.CodeInvalid:
		d.next("dragoman: " + inLine(lookAgain(err)))
	case err != nil:
		m.several = false
		d.show(inLine(err), m)
	default:
		d.next(done)
	}
}

// next says how the first matter ended, and puts the next one. Callers hold mu.
func (d *desk) next(said string) {
	d.ask("")
	if d.waiting = d.waiting[1:]; said != "" {
		d.say(said)
	}
	d.present()
}

// isWord reports whether a word is that of a choice, or its first letter.
func isWord(word, of string) bool {
	return strings.EqualFold(word, of) || strings.EqualFold(word, of[:1])
}
