package pirpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core"
)

// promptOf returns a request as pi gets it: its text, below it under headings what else it has,
// and its images. earlier are turns of the conversation that the session of pi does not have; they
// come first. folded reports whether the text has more than the content.
func promptOf(r core.Request, earlier []core.Turn) (text string, images []core.File, folded bool) {
	var parts []string
	if len(earlier) > 0 {
		parts = append(parts, "Earlier in this conversation:\n\n"+turnsText(earlier)+"\n\nNow:")
	}
	if r.Content != "" {
		parts = append(parts, r.Content)
	}
	if n := r.Notice; n != nil {
		parts = append(parts, "Notice (no answer is expected): "+n.Topic)
		if len(n.Data) > 0 {
			parts = append(parts, fenced("Data", "json", n.Data))
		}
	}
	if len(r.Data) > 0 {
		parts = append(parts, fenced("Data", "json", r.Data))
	}
	if len(r.Context) > 0 {
		parts = append(parts, fenced("Context", "json", r.Context))
	}
	for _, f := range r.Attachments {
		switch {
		case strings.HasPrefix(f.MediaType, "image/"):
			images = append(images, f)
		case utf8.Valid(f.Data) && !bytes.ContainsRune(f.Data, 0):
			parts = append(parts, fenced("File "+f.Name, "", f.Data))
		default:
			parts = append(parts, fmt.Sprintf("[file %s, %s, %d bytes: not text, left out]", f.Name, f.MediaType, len(f.Data)))
		}
	}
	if r.Domain != "" {
		parts = append(parts, "Domain: "+r.Domain)
	}
	if r.MaxTokens > 0 {
		parts = append(parts, fmt.Sprintf("Answer in at most %d tokens.", r.MaxTokens))
	}
	folded = len(parts) > 1 || len(parts) == 1 && r.Content == ""
	return strings.Join(parts, "\n\n"), images, folded
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

// fenced returns data under a heading, in a fence longer than any run of backticks in it.
func fenced(heading, language string, data []byte) string {
	fence := "```"
	for bytes.Contains(data, []byte(fence)) {
		fence += "`"
	}
	return heading + ":\n" + fence + language + "\n" + string(data) + "\n" + fence
}

// object returns the JSON of an object whose members always encode.
func object(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
