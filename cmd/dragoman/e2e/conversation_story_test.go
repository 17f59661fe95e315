package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// story is a conversation that a file tells: schemas/conversations/README.md says
// how it is written.
type story struct {
	path  string
	about string // what stands before the first step
	steps []*storyStep
}

// storyStep is one section of a story: its heading and what stands below.
type storyStep struct {
	heading string
	line    int // where the heading stands
	body    string
	frames  []storyFrame // of a body that is JSON
}

// storyFrame is one JSON value of a step, with the remarks above it.
type storyFrame struct {
	remarks string
	value   *jsonValue
}

var headings = regexp.MustCompile(`^-- *(.*?) *--$`)

// readStory reads a story from a file in the txtar format. It takes the file apart
// itself because a story that fails is to be told by its line.
func readStory(path string) (*story, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &story{path: path}
	for i, line := range strings.SplitAfter(string(data), "\n") {
		if m := headings.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			s.steps = append(s.steps, &storyStep{heading: m[1], line: i + 1})
			continue
		}
		if len(s.steps) == 0 {
			s.about += line
		} else {
			s.steps[len(s.steps)-1].body += line
		}
	}
	if strings.TrimSpace(s.about) == "" {
		return nil, fmt.Errorf("%s begins without a word: tell in plain words what happens", path)
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

// isJSON reports whether the body of the step is JSON values.
func (st *storyStep) isJSON() bool {
	return !strings.HasSuffix(st.heading, " verbatim") && !strings.HasPrefix(st.heading, "file ") && !strings.HasSuffix(st.heading, " connects") && !strings.HasSuffix(st.heading, " starts") && st.heading != "hub"
}

// parse reads the body: JSON values one behind the other, and lines of remarks that
// begin with #.
func (st *storyStep) parse() error {
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
			return fmt.Errorf("what stands here is neither JSON nor a remark: %w", err)
		}
		st.frames = append(st.frames, storyFrame{remarks, v})
		rest, remarks = rest[d.InputOffset():], ""
	}
	if remarks != "" {
		st.frames = append(st.frames, storyFrame{remarks: remarks})
	}
	return nil
}

// values are the JSON values of the step.
func (st *storyStep) values() []*jsonValue {
	var vs []*jsonValue
	for _, f := range st.frames {
		if f.value != nil {
			vs = append(vs, f.value)
		}
	}
	return vs
}

// pages is the body that the step would have with these values, under the remarks
// that it has.
func (st *storyStep) pages(vs []*jsonValue) string {
	var b strings.Builder
	for i, v := range vs {
		if i < len(st.frames) {
			b.WriteString(st.frames[i].remarks)
		}
		b.WriteString(v.page() + "\n")
	}
	for _, f := range st.frames[min(len(vs), len(st.frames)):] {
		b.WriteString(f.remarks)
	}
	return b.String()
}

// problem is an error of the step, with the place where it stands.
func (st *storyStep) problem(s *story, format string, args ...any) error {
	return fmt.Errorf("%s:%d: -- %s --: %s", s.path, st.line, st.heading, fmt.Sprintf(format, args...))
}

// givenNames are the names that ids get when a story is written down.
var givenNames = regexp.MustCompile(`\$id[0-9]*\b`)

// write writes the story back to its file, JSON as people read it. An id that was
// given a name and comes once needs none.
func (s *story) write() error {
	var b bytes.Buffer
	b.WriteString(s.about)
	for _, st := range s.steps {
		fmt.Fprintf(&b, "-- %s --\n", st.heading)
		if st.isJSON() {
			b.WriteString(st.pages(st.values()))
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
