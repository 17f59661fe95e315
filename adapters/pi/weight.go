package pi

// bytesPerToken is how many bytes of text a token is taken to be, and imageBytes as how
// many bytes of text an image counts.
const (
	bytesPerToken = 4
	imageBytes    = 4_800
)

// count notes how many bytes of text a message takes in a context, and of those how many
// it says.
func (m *message) count(bytes, words int) {
	m.tokens, m.words = int64((bytes+bytesPerToken-1)/bytesPerToken), words
}

// estimate is about how many tokens a message takes in a context. It is what compaction
// goes by where no agent has said more. A message that was not counted when it was made
// has to be decoded.
func estimate(m message) int64 {
	if m.tokens == 0 && len(m.json) > 0 {
		m.countBlocks(m.blocks())
	}
	return m.tokens
}

// countBlocks counts a message by its content.
func (m *message) countBlocks(blocks []contentBlock) {
	n := 0
	for _, b := range blocks {
		if b.Type == "image" {
			n += imageBytes
		} else {
			n += len(b.Text) + len(b.Thinking) + len(b.Name) + len(b.Arguments)
		}
	}
	words := len(textIn(blocks))
	if n == 0 {
		n = len(m.spokenAs(blocks))
	}
	m.count(n, words)
}

// weight is what is known of how much the context of a tree takes, in tokens.
type weight struct {
	reported int64 // by what the agent said of its last answer; 0 where none did
	counted  int64 // about, by the messages
}

// fills reports whether the context takes so many tokens: by what the agent said, else
// by what it takes about.
func (w weight) fills(limit int64) bool {
	if w.reported > 0 {
		return w.reported >= limit
	}
	return w.counted >= limit
}
