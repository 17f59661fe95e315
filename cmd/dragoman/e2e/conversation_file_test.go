package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// recording is a txtar file; schemas/conversations/README.md describes the format.
type recording struct {
	path  string
	about string // the text before the first step
	steps []*step
}

// step is one section of a conversation: its heading and its body.
type step struct {
	heading string
	line    int // of the heading
	body    string
	frames  []stepFrame // of a body that is JSON
}

// stepFrame is one JSON value of a step, with the remarks above it.
type stepFrame struct {
	remarks string
	value   *jsonValue
}

var headings = regexp.MustCompile(`^-- *(.*?) *--$`)

// readConversation reads a conversation. It parses the txtar format itself, because a failure names
// the line.
func readConversation(path string) (*recording, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &recording{path: path}
	for i, line := range strings.SplitAfter(string(data), "\n") {
		if m := headings.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			s.steps = append(s.steps, &step{heading: m[1], line: i + 1})
			continue
		}
		if len(s.steps) == 0 {
			s.about += line
		} else {
			s.steps[len(s.steps)-1].body += line
		}
	}
	if strings.TrimSpace(s.about) == "" {
		return nil, fmt.Errorf("%s begins without a description of what happens", path)
	}
	for _, st := range s.steps {
		if st.isJSON() {
			if err := st.parse(); err != nil {
				return nil, st.problem(s, "%v", err)
			}
		}
	}
	return s, nil
}

// isJSON reports whether the body of the step is JSON.
func (st *step) isJSON() bool {
	return !strings.HasSuffix(st.heading, " verbatim") && !strings.HasPrefix(st.heading, "file ") && !strings.HasSuffix(st.heading, " connects") && !strings.HasSuffix(st.heading, " starts") && st.heading != "hub"
}

// parse reads the body: JSON values, and lines of comments that begin with #.
func (st *step) parse() error {
	rest, remarks := st.body, ""
	for {
		rest = strings.TrimLeft(rest, " \t\r\n")
		if rest == "" {
			break
		}
		if rest[0] == '#' {
			line, more, _ := strings.Cut(rest, "\n")
			remarks, rest = remarks+line+"\n", more
			continue
		}
		d := json.NewDecoder(strings.NewReader(rest))
		d.UseNumber()
		v, err := readJSON(d)
		if err != nil {
			return fmt.Errorf("this is neither JSON nor a comment: %w", err)
		}
		st.frames = append(st.frames, stepFrame{remarks, v})
		rest, remarks = rest[d.InputOffset():], ""
	}
	if remarks != "" {
		st.frames = append(st.frames, stepFrame{remarks: remarks})
	}
	return nil
}

// values returns the JSON values of the step.
func (st *step) values() []*jsonValue {
	var vs []*jsonValue
	for _, f := range st.frames {
		if f.value != nil {
			vs = append(vs, f.value)
		}
	}
	return vs
}

// prettyBody returns the body with these values under the step's comments.
func (st *step) prettyBody(vs []*jsonValue) string {
	var b strings.Builder
	for i, v := range vs {
		if i < len(st.frames) {
			b.WriteString(st.frames[i].remarks)
		}
		b.WriteString(v.pretty() + "\n")
	}
	for _, f := range st.frames[min(len(vs), len(st.frames)):] {
		b.WriteString(f.remarks)
	}
	return b.String()
}

// problem returns an error with the place of the step.
func (st *step) problem(s *recording, format string, args ...any) error {
	return fmt.Errorf("%s:%d: -- %s --: %s", s.path, st.line, st.heading, fmt.Sprintf(format, args...))
}

// givenNames match the names that ids get when a conversation is written.
var givenNames = regexp.MustCompile(`\$id[0-9]*\b`)

// write writes the conversation to its file. An id that occurs only once becomes $any.
func (s *recording) write() error {
	var b bytes.Buffer
	b.WriteString(s.about)
	for _, st := range s.steps {
		fmt.Fprintf(&b, "-- %s --\n", st.heading)
		if st.isJSON() {
			b.WriteString(st.prettyBody(st.values()))
		} else {
			b.WriteString(st.body)
		}
	}
	often := map[string]int{}
	for _, name := range givenNames.FindAllString(b.String(), -1) {
		often[name]++
	}
	text := givenNames.ReplaceAllStringFunc(b.String(), func(name string) string {
		if often[name] == 1 {
			return "$any"
		}
		return name
	})
	return os.WriteFile(s.path, []byte(text), 0o644)
}
