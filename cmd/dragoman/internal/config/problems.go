package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// maxProblems bounds how many problems are reported.
const maxProblems = 50

// problem is something that is wrong with a setting, and what to write instead.
type problem struct {
	at   Origin
	text string
}

// problems are all that is wrong with the settings.
type problems []problem

// add adds a problem.
func (p *problems) add(at Origin, format string, args ...any) {
	*p = append(*p, problem{at, fmt.Sprintf(format, args...)})
}

// sort orders problems of one file by their lines.
func (p problems) sort() {
	slices.SortStableFunc(p, func(a, b problem) int { return cmp.Compare(a.at.line(), b.at.line()) })
}

// err returns the problems as one error with a line for each; nil for none.
func (p problems) err() error {
	var all []error
	for _, one := range p[:min(len(p), maxProblems)] {
		all = append(all, fmt.Errorf("%s: %s", one.at, one.text))
	}
	if more := len(p) - maxProblems; more > 0 {
		all = append(all, fmt.Errorf("%s: and %d more problems like these", p[maxProblems].at.source(), more))
	}
	return errors.Join(all...)
}
