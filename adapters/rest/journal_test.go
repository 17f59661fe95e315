package rest_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// sick is a journal in memory with the illnesses of one on a disk.
type sick struct {
	journal.Journal
	healed chan struct{} // until then nothing is written
	broken error         // what reading comes to
	health error         // what it says of itself
}

func (s sick) Health() error { return s.health }

func (s sick) Append(ctx context.Context, records ...journal.Record) error {
	select {
	case <-s.healed:
		return s.Journal.Append(ctx, records...)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s sick) Read(ctx context.Context, task core.TaskID, after uint64, limit int) ([]core.Event, error) {
	if s.broken != nil {
		return nil, s.broken
	}
	return s.Journal.Read(ctx, task, after, limit)
}

func everybody(*http.Request) (core.Principal, error) {
	return core.Principal{ID: operator, Operator: true}, nil
}

func TestARecordedReceiptIsNotGivenForAJournalThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := sick{Journal: journal.NewMemory(journal.Retention{}), healed: make(chan struct{})}
		h := coretest.NewHub(t, hub.Options{Journal: j})
		t.Cleanup(func() { close(j.healed) })
		g := &stage{t: t, hub: h}
		a := g.agent("a")
		w := httptest.NewRecorder()
		rest.New(h, rest.Options{Principal: everybody}).
			ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/tasks", strings.NewReader(`{"to":"a","content":"x","receipt":"recorded"}`)))
		got := answer{t, w.Code, w.Header(), w.Body.Bytes()}
		got.conforms(http.MethodPost, "/v1/tasks")
		p := got.refused(http.StatusGatewayTimeout, core.CodeTimeout, "journal", "30s")
		if p.Retryable {
			t.Error("got a problem that is retryable, want one that is not: a second request would be a second task")
		}
		task := a.takes()
		if p.Task != task.ID() {
			t.Errorf("got task %q, want %s", p.Task, task.ID())
		}
		a.says(task, core.Done{})
	})
}

func TestAClientThatWantsARecordLearnsAtOnceThatTheJournalFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := sick{Journal: journal.NewMemory(journal.Retention{}), healed: make(chan struct{}), health: errors.New("the disk is full: make room")}
		h := coretest.NewHub(t, hub.Options{Journal: j})
		t.Cleanup(func() { close(j.healed) })
		g := &stage{t: t, hub: h}
		a := g.agent("a")
		w, began := httptest.NewRecorder(), time.Now()
		rest.New(h, rest.Options{Principal: everybody}).
			ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/tasks", strings.NewReader(`{"to":"a","content":"x","receipt":"recorded"}`)))
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v, want a second at most", took)
		}
		got := answer{t, w.Code, w.Header(), w.Body.Bytes()}
		got.conforms(http.MethodPost, "/v1/tasks")
		if p := got.refused(http.StatusServiceUnavailable, core.CodeOverloaded, "taken in", "make room"); p.Retryable {
			t.Error("got a problem that is retryable, want one that is not: a second request would be a second task")
		}
		a.says(a.takes(), core.Done{})
	})
}

func TestTheHubAtAGlanceTellsThatTheJournalTakesNoRecords(t *testing.T) {
	type view struct {
		Journal struct {
			State, Reason string
			Since         time.Time
		}
	}
	var v view
	start(t, hub.Options{}, rest.Options{}).get("/v1/hub").into(http.StatusOK, &v)
	if v.Journal.State != "ok" || v.Journal.Reason != "" || !v.Journal.Since.IsZero() {
		t.Errorf("a journal that is well: got %+v, want ok alone", v.Journal)
	}
	began, j := time.Now(), sick{Journal: journal.NewMemory(journal.Retention{}), healed: make(chan struct{}), health: errors.New("the disk is full: make room")}
	close(j.healed)
	g := start(t, hub.Options{Journal: j}, rest.Options{})
	v = view{}
	g.get("/v1/hub").into(http.StatusOK, &v)
	if v.Journal.State != "failing" || v.Journal.Reason != j.health.Error() || v.Journal.Since.Before(began) || v.Journal.Since.After(time.Now()) {
		t.Errorf("a journal on a full disk: got %+v, want it failing since now, and why", v.Journal)
	}
}

func TestAnErrorThatIsNoFaultIsInternalAndLogged(t *testing.T) {
	j := sick{Journal: journal.NewMemory(journal.Retention{}), healed: make(chan struct{}), broken: errors.New("disk on fire")}
	close(j.healed)
	h := coretest.NewHub(t, hub.Options{Journal: j})
	var log bytes.Buffer
	w := httptest.NewRecorder()
	rest.New(h, rest.Options{Principal: everybody, Log: slog.New(slog.NewTextHandler(&log, nil))}).
		ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/tasks/x", nil))
	got := answer{t, w.Code, w.Header(), w.Body.Bytes()}
	got.conforms(http.MethodGet, "/v1/tasks/x")
	got.refused(http.StatusInternalServerError, core.CodeInternal, core.InternalMessage)
	if strings.Contains(w.Body.String(), "fire") || !strings.Contains(log.String(), "disk on fire") {
		t.Errorf("got %q told and %q logged, want the cause in the log alone", w.Body, log.String())
	}
}
