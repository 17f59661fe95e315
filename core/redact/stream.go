package redact

import (
	"strings"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core"
)

// stream is the text of a task as far as it matters: pieces that are held back, and before
// them what may be the beginning of a match.
type stream struct {
	text    string
	pieces  []piece // those that are held back
	decided int     // where they begin in the text
	marked  int     // up to here the text is a part of a match that has its Mark
	opened  bool    // the text ends with a match, or with what may be the beginning of one
}

// piece is an event with a part of the text.
type piece struct {
	*held
	end int // of its part
}

// pass reports whether a text needs nothing: it is not added then, as it matters to none that
// follows.
func (s *stream) pass(r *Redactor, text string) bool {
	if s.opened || len(s.pieces) > 0 || !r.isPlain(text) {
		return false
	}
	*s = stream{}
	return true
}

// add adds the text of an event, and settles what is decided.
func (s *stream) add(r *Redactor, h *held, text string) {
	s.text += text
	s.pieces = append(s.pieces, piece{h, len(s.text)})
	s.settle(r, false)
}

// settle gives the pieces their final text whose text is decided, or all pieces.
func (s *stream) settle(r *Redactor, all bool) {
	if len(s.pieces) == 0 {
		return
	}
	undecided, spans := r.undecided(s.text), r.find(s.text)
	cut := undecided
	if all {
		cut = len(s.text)
	}
	for _, m := range spans {
		if m.from < cut && m.to > cut { // what is redacted anyway needs no decision
			cut = m.to
		}
	}
	n := 0
	for ; n < len(s.pieces) && s.pieces[n].end <= cut; n++ {
		s.finish(s.pieces[n], spans)
	}
	if s.pieces = s.pieces[n:]; len(s.pieces) == 0 {
		s.pieces = nil
	}
	s.opened = undecided < len(s.text) || len(spans) > 0 && spans[len(spans)-1].to == len(s.text)
	if drop := s.before(r, spans, undecided); drop > 0 {
		s.text = s.text[drop:]
		s.decided -= drop
		s.marked = max(0, s.marked-drop)
		for i := range s.pieces {
			s.pieces[i].end -= drop
		}
	}
}

// before returns how much of the text matters no longer: what is decided and released, without a
// match that may go on, and without what patterns look at before a match.
func (s *stream) before(r *Redactor, spans []span, undecided int) int {
	keep := min(s.decided, undecided)
	for _, m := range spans {
		if m.to > s.decided || m.to == len(s.text) {
			keep = min(keep, m.from)
		}
	}
	if len(r.patterns) > 0 {
		keep -= utf8.UTFMax
	}
	return max(keep, s.decided-r.context-utf8.UTFMax)
}

// finish gives a piece its text without the spans. A span that began in an earlier piece has
// its Mark there.
func (s *stream) finish(p piece, spans []span) {
	from, to := s.decided, p.end
	s.decided = to
	p.final = true
	at, changed := from, false
	var b strings.Builder
	if s.marked > at {
		at, changed = min(s.marked, to), true
	}
	for _, m := range spans {
		if m.to <= at || m.from >= to {
			continue
		}
		changed = true
		if m.from >= at {
			b.WriteString(s.text[at:m.from])
		}
		if m.from >= s.marked {
			b.WriteString(Mark)
		}
		at = min(m.to, to)
		s.marked = max(s.marked, m.to)
	}
	if !changed {
		return
	}
	b.WriteString(s.text[at:to])
	switch p.event.Body.(type) {
	case core.Text:
		p.event.Body = core.Text{Text: b.String()}
	case core.Thinking:
		p.event.Body = core.Thinking{Text: b.String()}
	}
}
