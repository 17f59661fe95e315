package pirpc

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core"
)

// promptOf returns a request as pi gets it: its text, below it under headings what else it has,
// and its images. earlier are turns of the conversation that the session of pi does not have; they
// come first. folded reports whether the text has more than the content.
func promptOf(r core.Request, earlier []core.Turn) (text string, images []core.File, folded bool) {
	var files []string
	for _, f := range r.Attachments {
		switch {
		case leavesOut(f):
			files = append(files, fmt.Sprintf("[file %s, %s, %d bytes: not text, left out]", f.Name, f.MediaType, len(f.Data)))
		case strings.HasPrefix(f.MediaType, "image/"):
			images = append(images, f)
		default:
			files = append(files, core.Fenced("File "+f.Name, "", f.Data))
		}
	}
	text = r.Prompt(files...)
	if len(earlier) > 0 {
		text = "Earlier in this conversation:\n\n" + turnsText(earlier) + "\n\nNow:\n\n" + text
	}
	return text, images, text != r.Content
}

// leavesOut reports whether pi does not get a file.
func leavesOut(f core.File) bool {
	return !strings.HasPrefix(f.MediaType, "image/") && (!utf8.Valid(f.Data) || bytes.ContainsRune(f.Data, 0))
}

// turnsText writes turns, each under who said it.
func turnsText(turns []core.Turn) string {
	var b strings.Builder
	for i, t := range turns {
		if i > 0 {
			b.WriteString("\n\n")
		}
		switch {
		case t.Role == core.RoleAssistant && t.Agent != "":
			fmt.Fprintf(&b, "assistant (%s): ", t.Agent)
		default:
			b.WriteString(t.Role.String() + ": ")
		}
		b.WriteString(t.Text)
	}
	return b.String()
}
