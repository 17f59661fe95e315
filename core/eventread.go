package core

import "unicode/utf8"

// readWritten reads an event as [Event.AppendJSON] writes the most frequent ones, in one pass. It
// reports false for any other form, which may be an event too. Hubs of a cluster read the events of
// each other's tasks all the time.
func (e *Event) readWritten(b []byte) bool {
	r := reader{b: b, ok: true}
	var got Event
	r.skip(`{"seq":`)
	got.Seq = uint64(r.number())
	if r.next(`,"epoch":`) {
		got.Epoch = r.number()
	}
	r.skip(`,"at":"`)
	at := r.text()
	r.skip(`,"kind":"`)
	k, known := ParseKind(string(r.text()))
	r.skip(`,"body":`)
	if !r.ok || !known || got.At.UnmarshalText(at) != nil {
		return false
	}
	switch k {
	case KindText:
		r.skip(`{"text":"`)
		got.Body = Text{Text: string(r.text())}
	case KindThinking:
		r.skip(`{"text":"`)
		got.Body = Thinking{Text: string(r.text())}
	case KindDone:
		var d Done
		r.skip(`{`)
		if r.next(`"text":"`) {
			d.Text = string(r.text())
		}
		got.Body = d
	case KindAssigned:
		var a Assigned
		r.skip(`{"agent":"`)
		a.Agent = AgentID(r.text())
		r.skip(`,"attempt":`)
		a.Attempt = int(r.number())
		if r.next(`,"dialect":"`) {
			a.Dialect = string(r.text())
		}
		got.Body = a
	default:
		return false
	}
	r.skip("}}")
	if !r.ok || len(r.b) > 0 {
		return false
	}
	*e = got
	return true
}

// reader reads parts of a text. Once a part is not as expected, ok is false.
type reader struct {
	b  []byte
	ok bool
}

// next reports whether the text goes on with a part, and then skips it.
func (r *reader) next(part string) bool {
	if len(r.b) < len(part) || string(r.b[:len(part)]) != part {
		return false
	}
	r.b = r.b[len(part):]
	return true
}

func (r *reader) skip(part string) { r.ok = r.next(part) && r.ok }

// number reads a number that is not too large.
func (r *reader) number() (n uint32) {
	const most = 9 // digits, which fit
	i := 0
	for ; i < len(r.b) && i <= most && '0' <= r.b[i] && r.b[i] <= '9'; i++ {
		n = 10*n + uint32(r.b[i]-'0')
	}
	if i == 0 || i > most || i > 1 && r.b[0] == '0' {
		r.ok = false
		return 0
	}
	r.b = r.b[i:]
	return n
}

// text reads the rest of a string that has no escapes, and its closing quote.
func (r *reader) text() (text []byte) {
	for i, c := range r.b {
		switch {
		case c == '"':
			text, r.b = r.b[:i], r.b[i+1:]
			r.ok = r.ok && utf8.Valid(text)
			return text
		case c == '\\' || c < ' ':
			r.ok = false
			return nil
		}
	}
	r.ok = false
	return nil
}
