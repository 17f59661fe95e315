package pirpc

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// maxDetail bounds what one update of a tool adds, in bytes.
	maxDetail = 8 << 10
	// overlap is how much of the output so far is looked for in an output that does not begin
	// with it: pi keeps the last 50 KB of a long one.
	overlap = 256
)

// tool is a tool that runs.
type tool struct {
	name, input string
	parent      string // the id of the tool that called it; "" for the model
	output      string // so far
}

// news returns what an output has beyond that before, at most maxDetail bytes of its end.
func (t *tool) news(output string) string {
	rest, continues := strings.CutPrefix(output, t.output)
	if !continues {
		rest = output
		if tail := t.output[max(0, len(t.output)-overlap):]; len(tail) == overlap {
			if at := strings.LastIndex(output, tail); at >= 0 {
				rest = output[at+overlap:]
			}
		}
	}
	t.output = output
	if over := len(rest) - maxDetail; over > 0 {
		for over < len(rest) && !utf8.RuneStart(rest[over]) {
			over++
		}
		rest = fmt.Sprintf("[%d bytes left out]\n%s", over, rest[over:])
	}
	return rest
}
