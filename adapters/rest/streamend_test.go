package rest_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/policy"
)

// brittle is a journal that can be read for a while.
type brittle struct {
	journal.Journal
	broken atomic.Bool
}

func (b *brittle) Read(ctx context.Context, id core.TaskID, after uint64, limit int) ([]core.Event, error) {
	if b.broken.Load() {
		return nil, errors.New("disk on fire")
	}
	return b.Journal.Read(ctx, id, after, limit)
}

func TestAJournalThatFailsWhileAStreamCatchesUpIsToldAndLogged(t *testing.T) {
	disk := &brittle{Journal: journal.NewMemory(journal.Retention{})}
	var log bytes.Buffer
	g := start(t, hub.Options{Journal: disk, Limits: hub.Limits{FinishedTasks: 1}}, rest.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	a := g.agent("a")
	beginning := g.follow(http.MethodGet, "/v1/events", "")
	first, _ := beginning.next()
	beginning.leave()
	<-g.left
	for range 2 {
		id := g.opened(`{"to":"a","content":"hi","receipt":"recorded"}`)
		a.report(a.accept(), core.Done{})
		g.ended(id)
	}
	disk.broken.Store(true)
	for _, form := range []string{asSSE, asLines} {
		log.Reset()
		r := g.follow(http.MethodGet, "/v1/events?from="+first.id, "", form)
		told := ""
		if form == asSSE {
			_, _ = r.next() // where it begins
			m, _ := r.next()
			told = m.event + " " + string(m.data)
			if _, more := r.next(); more {
				t.Error("got more after the error, want the end")
			}
		} else {
			told, _ = r.lines.ReadString('\n')
			documented(t, "Line", "", []byte(told))
			if rest, err := r.lines.ReadString('\n'); err == nil {
				t.Errorf("got %s after the error, want the end", rest)
			}
		}
		for path := range g.left { // the handler has returned
			if path == "/v1/events" {
				break
			}
		}
		if !strings.Contains(told, `error`) || !strings.Contains(told, core.InternalMessage) || strings.Contains(told, "fire") {
			t.Errorf("%s: got %s, want an error without its cause", form, told)
		}
		if n := strings.Count(log.String(), "disk on fire"); n != 1 {
			t.Errorf("%s: got %q logged, want the cause once", form, log.String())
		}
	}
	disk.broken.Store(false)
	if m, ok := g.follow(http.MethodGet, "/v1/events?from="+first.id, "").next(); !ok || m.id != first.id {
		t.Errorf("got %v, want to go on there once the journal can be read", m)
	}
}

func TestAReaderWhoseRightWasWithdrawnIsToldWhy(t *testing.T) {
	var rules policy.Current
	rules.Replace(coretest.Rules(t, "ann see,ask", "ops operate,read", "eve read"))
	g := start(t, hub.Options{Authorizer: &rules}, rest.Options{})
	a := g.agent("a")
	id := g.opened(`{"to":"a","content":"hi"}`, "X-User: ann")
	taken := a.accept()
	all := g.follow(http.MethodGet, "/v1/events", "", asSSE, "X-User: ops")
	_, _ = all.next()
	one := g.events(id, "?from=1.2", asSSE, "X-User: eve")
	rules.Replace(coretest.Rules(t, "ann see,ask"))
	g.hub.Recheck()
	for name, r := range map[string]*reader{"all tasks": all, "one": one} {
		m, _ := r.next()
		if m.event != "error" || !strings.Contains(string(m.data), "the rules have changed") || !strings.Contains(string(m.data), `"not_authorized"`) {
			t.Errorf("the stream of %s: got %s %s, want the reason", name, m.event, m.data)
		}
	}
	a.report(taken, core.Done{})
}
