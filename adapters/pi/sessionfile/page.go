package sessionfile

// Page is memory in which the short lines of one conversation stand together: a long
// conversation is a few large objects, and not as many as it has entries. The zero Page
// is empty. Use it from one goroutine.
type Page struct{ latest []byte }

// pageBytes is how much memory is taken at once at most.
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
