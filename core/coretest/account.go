package coretest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/redact"
)

// account is what a reader knows of a task: its text, and its other events.
type account struct {
	last  uint64
	text  strings.Builder
	other []core.Event
	ends  []place
}

// place is the length of the text after an event.
type place struct {
	seq  uint64
	text int
}

// upTo returns the beginning of the account, up to a sequence number.
func (a *account) upTo(seq uint64) *account {
	b := &account{last: seq}
	for _, p := range a.ends {
		if p.seq <= seq {
			b.text.Reset()
			b.text.WriteString(a.text.String()[:p.text])
		}
	}
	for _, e := range a.other {
		if e.Seq <= seq {
			b.other = append(b.other, e)
		}
	}
	return b
}

// redacted returns the account as a journal has it that redacts.
func (a *account) redacted(r *redact.Redactor) *account {
	b := &account{last: a.last}
	b.text.WriteString(r.Text(a.text.String()))
	for _, e := range a.other {
		b.other = append(b.other, r.Event(e))
	}
	return b
}

// add adds the next event. It describes a gap or a repetition, if there is one.
func (a *account) add(e core.Event) (hole string) {
	if e.Seq != a.last+1 {
		hole = fmt.Sprintf("got sequence %d, want %d", e.Seq, a.last+1)
	}
	a.last = e.End()
	if b, ok := e.Body.(core.Text); ok {
		a.text.WriteString(b.Text)
	}
	if !e.Mergeable() {
		a.other = append(a.other, e)
	}
	a.ends = append(a.ends, place{a.last, a.text.Len()})
	return hole
}

// difference is a broken promise and how it is broken.
type difference struct{ promise, how string }

// differs returns the differences of an account from that of the log.
func (a *account) differs(log *account) (all []difference) {
	differ := func(promise, format string, args ...any) {
		all = append(all, difference{promise, fmt.Sprintf(format, args...)})
	}
	if a.last != log.last {
		differ("P5", "it ends at %d, want %d", a.last, log.last)
	}
	if a.text.String() != log.text.String() {
		differ("P3", "got %d bytes of text, the agent said %d", a.text.Len(), log.text.Len())
	}
	if len(a.other) != len(log.other) {
		differ("P3", "got %d events beside the text, want %d", len(a.other), len(log.other))
		return all
	}
	for i, got := range a.other {
		want := log.other[i]
		if got.Seq != want.Seq || got.Body.Kind() != want.Body.Kind() {
			differ("P2", "got %s at %d, want %s at %d", got.Body.Kind(), got.Seq, want.Body.Kind(), want.Seq)
		}
		if !sameForeign(foreignOf(got), foreignOf(want)) && !(i == 0 && log.isRefusal()) {
			differ("P11", "the foreign fields of %s at %d are not those that came", got.Body.Kind(), got.Seq)
		}
	}
	return all
}

// isRefusal reports whether nothing but an end follows the request, of which a refusal keeps no content.
func (a *account) isRefusal() bool {
	return len(a.other) == 2 && a.last == 2 && a.other[1].Body.Kind() == core.KindFailed
}

// foreignOf returns the foreign fields of an event, including those of the request.
func foreignOf(e core.Event) []*core.Foreign {
	if b, ok := e.Body.(core.Opened); ok {
		return []*core.Foreign{e.Foreign, b.Request.Foreign}
	}
	return []*core.Foreign{e.Foreign}
}

func sameForeign(got, want []*core.Foreign) bool {
	for i, g := range got {
		w := want[i]
		if g == nil || w == nil {
			if g != w {
				return false
			}
			continue
		}
		if g.Dialect != w.Dialect || !bytes.Equal(g.Wire, w.Wire) || compact(g.JSON) != compact(w.JSON) {
			return false
		}
	}
	return true
}

// compact returns JSON without white space between its tokens, which is not kept.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}
