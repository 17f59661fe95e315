package pi

// weight is what is known of how much the context of a tree takes. Messages are
// looked at once, since that means reading them.
type weight struct {
	reported int64 // tokens, by what the agent said of its last answer; 0 where none did
	bytes    int   // of the first sized messages
	sized    int
	tokens   int64 // about, of the first weighed messages
	weighed  int
}

// fills reports whether the context takes so many tokens: by what the agent said, else
// by what it takes about.
func (t *tree) fills(limit int64) bool {
	w := &t.weight
	if w.reported > 0 {
		return w.reported >= limit
	}
	for ; w.sized < len(t.context); w.sized++ {
		w.bytes += len(t.context[w.sized].said().json)
	}
	if int64(w.bytes) < limit*bytesPerToken { // it cannot be
		return false
	}
	for ; w.weighed < len(t.context); w.weighed++ {
		w.tokens += estimate(t.context[w.weighed].said())
	}
	return w.tokens >= limit
}
