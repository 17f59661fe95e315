package config

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// YAMLError says what is wrong with YAML to somebody who writes a file: what was found, and what is wanted.
type YAMLError struct {
	Line int // 0 if it is unknown
	Text string
}

// Error implements error.
func (e YAMLError) Error() string {
	if e.Line == 0 {
		return e.Text
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Text)
}

// Unquoted returns an error of YAML as the end of "the file is not YAML", without what may quote the file: it has secrets.
func Unquoted(err error) string {
	var e YAMLError
	switch errors.As(err, &e); {
	case e.Text == manyDocuments:
		return ": " + e.Error()
	case e.Line > 0:
		return fmt.Sprintf(" in line %d", e.Line)
	}
	return ""
}

// yamlError matches one error of the YAML package, with its line.
var yamlError = regexp.MustCompile(`^(?:yaml: )?(?:line ([0-9]+): )?(.*)$`)

// beginsAbove matches the errors of the YAML package whose line is one too low. It is the line where the list or the
// keys begin, or that of the mistake if they begin in the first line.
var beginsAbove = regexp.MustCompile(`^did not find expected (?:key|node content|'-' indicator|',' or '[]}]')$`)

// plainTexts are what the YAML package finds, and what is wanted instead, for somebody who writes a file.
var plainTexts = []struct{ found, plain string }{
	{"mapping values are not allowed in this context", "a second name with a colon in one line, or a line that is indented too far: write one to a line, and quotes around text with a colon"},
	{"did not find expected key", "want NAME: value, indented like its neighbours, in this line or near it"},
	{"did not find expected '-' indicator", "want - before each entry of the list, indented alike, in this line or near it"},
	{"did not find expected ',' or ']'", "a list is not closed: want , or ] in this line or near it"},
	{"did not find expected ',' or '}'", "an object is not closed: want , or } in this line or near it"},
	{"did not find expected node content", "want a value in this line or near it"},
	{"could not find expected ':'", "want NAME: value"},
	{"found character that cannot start any token", "a value cannot begin with this character: put it in quotes, and indent with blanks, not with tabs"},
	{"did not find expected alphabetic or numeric character", `a value that begins with * or & refers to another one: put it in quotes, such as "*"`},
	{"found unexpected end of stream", "a quote is not closed"},
	{"found unknown escape character", `a \ in "..." begins an escape that there is not: write \\ for it, or '...' around the text`},
	{"invalid leading UTF-8 octet", "it is not UTF-8 text"},
	{"control characters are not allowed", "there is a control character in it: remove it"},
}

// unknownAnchor matches the error for an alias of nothing, which has no line.
var unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)

// plainYAML returns an error of the YAML package in plain words.
func plainYAML(err error) YAMLError {
	var plain YAMLError
	if errors.As(err, &plain) {
		return plain
	}
	m := yamlError.FindStringSubmatch(strings.Join(strings.Fields(err.Error()), " "))
	line, _ := strconv.Atoi(m[1])
	if beginsAbove.MatchString(m[2]) {
		line++
	}
	for _, one := range plainTexts {
		if strings.HasPrefix(m[2], one.found) {
			return YAMLError{max(1, line), one.plain} // without a line it is the first
		}
	}
	if name := unknownAnchor.FindStringSubmatch(m[2]); name != nil {
		m[2] = fmt.Sprintf(`*%s refers to a value that is marked with &%[1]s, and there is none: if it is text, put it in quotes`, name[1])
	}
	return YAMLError{line, m[2]}
}
