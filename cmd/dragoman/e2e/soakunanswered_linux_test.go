package e2e

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// The outcomes of a question to an agent that never leaves, behind who asked.
const (
	outcomeAnswered   = ": answered"
	outcomeUnanswered = ": not answered"
	outcomeLate       = ": not answered, while the machine was late"
)

// unansweredShare is the share of the questions of an asker that may have no answer although the
// machine was not late.
const unansweredShare = 0.001

// isRefusal reports whether an error says that something took too long or was too much. Some dialects
// have only the text. A hub that has lost a frame looks like that too.
func isRefusal(err error) bool {
	text := err.Error()
	return strings.Contains(text, "timeout") || strings.Contains(text, "deadline") || strings.Contains(text, "overloaded")
}

// unanswered counts a question that an agent has not answered in time, though it never leaves.
func (s *soak) unanswered(asker string, began time.Time, err error) {
	now := time.Now()
	late := s.late.share(began, now)
	if late >= lateShare {
		s.count(asker + outcomeLate)
		return
	}
	s.count(asker + outcomeUnanswered)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unansweredLines) < 20 {
		s.unansweredLines = append(s.unansweredLines, fmt.Sprintf("%s %s: not answered after %.1f s, of which the machine was late for %.0f %%: %v",
			now.UTC().Format(time.TimeOnly), asker, now.Sub(began).Seconds(), 100*late, err))
	}
}

// unansweredOf says for each asker how many of its questions were not answered, and returns an error
// if they are too many.
func unansweredOf(counts map[string]int) (table string, err error) {
	var b strings.Builder
	for _, outcome := range slices.Sorted(maps.Keys(counts)) {
		asker, is := strings.CutSuffix(outcome, outcomeAnswered)
		if !is {
			continue
		}
		lost, late := counts[asker+outcomeUnanswered], counts[asker+outcomeLate]
		all := counts[outcome] + lost + late
		share := float64(lost) / float64(all)
		line := fmt.Sprintf("%s: %d of %d not answered (%.2f %%, of %.2f), and %d while the machine was late", asker, lost, all, 100*share, 100*unansweredShare, late)
		fmt.Fprintln(&b, line)
		if share > unansweredShare {
			err = errors.Join(err, errors.New(line))
		}
	}
	return b.String(), err
}

func TestSoakHasFewQuestionsWithoutAnswer(t *testing.T) {
	for _, tt := range []struct {
		name                 string
		answered, lost, late int
		fails                bool
	}{
		{"all answered", 500, 0, 0, false},
		{"one of a few", 500, 1, 0, true},
		{"one of a thousand", 999, 1, 0, false},
		{"two of a thousand", 998, 2, 0, true},
		{"many while the machine was late", 500, 0, 100, false},
		{"one while it was not", 500, 1, 100, true},
	} {
		counts := map[string]int{"pi" + outcomeAnswered: tt.answered, "pi" + outcomeUnanswered: tt.lost, "pi" + outcomeLate: tt.late, "a2a" + outcomeAnswered: 5000}
		table, err := unansweredOf(counts)
		if (err != nil) != tt.fails {
			t.Errorf("%s: got the error %v, want one: %v", tt.name, err, tt.fails)
		}
		if want := fmt.Sprintf("pi: %d of %d not answered", tt.lost, tt.answered+tt.lost+tt.late); !strings.Contains(table, want) {
			t.Errorf("%s: got the table %q, want %q in it", tt.name, table, want)
		}
	}
}
