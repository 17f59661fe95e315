package task

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/memory"
)

// search looks for a text in tasks, one at a time: one that is only in the journal is read as a whole.
type search struct {
	pattern *regexp.Regexp
	looked  int // how many tasks it has looked at
	bytes   int // that it has read
}

// beginSearch waits until no other page is searched, so that searches together hold one task in memory.
// endSearch lets the next one begin.
func (s *Store) beginSearch(ctx context.Context, text string) (*search, error) {
	select {
	case s.search <- struct{}{}:
		return &search{pattern: regexp.MustCompile("(?i)" + regexp.QuoteMeta(strings.ToValidUTF8(text, "\uFFFD")))}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *Store) endSearch() { <-s.search }

// isOver reports whether the page has cost enough: a search reads a task at least.
func (s *search) isOver(began time.Time) bool {
	return s != nil && s.looked > 0 && (s.bytes > searchBytes || time.Since(began) > listTime)
}

// finds reports whether a task has what is searched for, and notes where. The status is as somebody sees
// it, and so is the answer that it looks into.
func (l *listing) finds(ctx context.Context, one *Status) (bool, error) {
	if l.search == nil {
		return true, nil
	}
	l.search.looked++
	asked := []string{one.Request.Content, string(one.Request.Data)}
	if n := one.Request.Notice; n != nil {
		asked = append(asked, n.Topic, string(n.Data))
	}
	if one.Request.Thread != core.ThreadID(one.ID) {
		asked = append(asked, string(one.Request.Thread))
	}
	if one.Found = l.search.in(asked...); one.Found != "" {
		return true, ctx.Err()
	}
	answered, err := l.answered(ctx, one)
	one.Found = l.search.in(answered...)
	return one.Found != "", err
}

// answered returns what was answered; nothing of a task that is no longer kept.
func (l *listing) answered(ctx context.Context, one *Status) ([]string, error) {
	s := l.store
	t, err := s.Find(one.ID, func() ([]core.Event, error) { return s.journal.Read(ctx, one.ID, 0, 0) })
	switch {
	case errors.Is(err, &core.Fault{Code: core.CodeUnknownTask}):
		return nil, nil
	case err != nil:
		return nil, err
	}
	t.mu.Lock()
	read := t.loaded && !t.stored
	bytes := t.memory()
	t.mu.Unlock()
	if read {
		share := memory.Of(s.limits.Memory, memory.Ended)
		share.Add(bytes)
		defer share.Release()
	}
	l.search.bytes += bytes
	if !l.of(partiesOf(*one)).asSaid && s.host.Redactor() != nil {
		t = t.Redacted()
	}
	a := t.Answer()
	answered := []string{a.Text, string(a.Data)}
	if a.Fault != nil {
		answered = append(answered, a.Fault.Message)
	}
	return answered, nil
}

// What is shown before and after what was found, in bytes.
const (
	foundBefore = 40
	foundAfter  = 160
)

// in returns the text around the first place of what is searched for; "" if it is in none.
func (s *search) in(texts ...string) string {
	for _, text := range texts {
		at := s.pattern.FindStringIndex(text)
		if at == nil {
			continue
		}
		from, to := max(0, at[0]-foundBefore), min(len(text), at[1]+foundAfter)
		found := strings.ToValidUTF8(text[from:to], "")
		if from > 0 {
			found = "…" + found
		}
		if to < len(text) {
			found += "…"
		}
		return found
	}
	return ""
}
