package sessionfile

// Page allocates the short lines of a conversation together, so that a long conversation
// is a few large objects instead of one for each entry. The zero Page is empty. It is not
// safe for concurrent use.
type Page struct{ latest []byte }

// pageBytes bounds one allocation for short lines.
const pageBytes = 4 << 10

// room returns memory for a line of size bytes.
func (p *Page) room(size int) []byte {
	if size > pageBytes/4 {
		return make([]byte, 0, size)
	}
	if size > cap(p.latest)-len(p.latest) {
		p.latest = make([]byte, 0, max(size, min(pageBytes, 2*cap(p.latest))))
	}
	from := len(p.latest)
	p.latest = p.latest[:from+size]
	return p.latest[from : from : from+size]
}
