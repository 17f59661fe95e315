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

// failingJournal is a journal in memory that fails like one on a disk.
type failingJournal struct {
	journal.Journal
	writable chan struct{} // Append blocks until it is closed
	readErr  error         // returned by Read
	health   error         // returned by Health
}

func (s failingJournal) Health() error { return s.health }

func (s failingJournal) Append(ctx context.Context, records ...journal.Record) error {
	select {
	case <-s.writable:
		return s.Journal.Append(ctx, records...)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s failingJournal) Read(ctx context.Context, task core.TaskID, after uint64, limit int) ([]core.Event, error) {
	if s.readErr != nil {
		return nil, s.readErr
	}
	return s.Journal.Read(ctx, task, after, limit)
}

func asOperator(*http.Request) (core.Principal, error) {
	return core.Principal{ID: operator, Operator: true}, nil
}

func TestABlockedJournalGivesNoRecordedReceipt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := failingJournal{Journal: journal.NewMemory(journal.Retention{}), writable: make(chan struct{})}
		h := coretest.NewHub(t, hub.Options{Journal: j})
		t.Cleanup(func() { close(j.writable) })
		g := &testServer{t: t, hub: h}
		a := g.agent("a")
		w := httptest.NewRecorder()
		rest.New(h, rest.Options{Principal: asOperator}).
			ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/tasks", strings.NewReader(`{"to":"a","content":"x","receipt":"recorded"}`)))
		got := answer{t, w.Code, w.Header(), w.Body.Bytes()}
		got.conforms(http.MethodPost, "/v1/tasks")
		p := got.refused(http.StatusGatewayTimeout, core.CodeTimeout, "journal", "30s")
		if p.Retryable {
			t.Error("Retryable: got true, want false: a second request would be a second task")
		}
		task := a.accept()
		if p.Task != task.ID() {
			t.Errorf("got task %q, want %s", p.Task, task.ID())
		}
		a.report(task, core.Done{})
	})
}

func TestARequestForARecordedReceiptFailsSoonIfTheJournalFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := failingJournal{Journal: journal.NewMemory(journal.Retention{}), writable: make(chan struct{}), health: errors.New("the disk is full: make room")}
		h := coretest.NewHub(t, hub.Options{Journal: j})
		t.Cleanup(func() { close(j.writable) })
		g := &testServer{t: t, hub: h}
		a := g.agent("a")
		w, began := httptest.NewRecorder(), time.Now()
		rest.New(h, rest.Options{Principal: asOperator}).
			ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/tasks", strings.NewReader(`{"to":"a","content":"x","receipt":"recorded"}`)))
		if took := time.Since(began); took > time.Second {
			t.Errorf("got an answer after %v, want it within a second", took)
		}
		got := answer{t, w.Code, w.Header(), w.Body.Bytes()}
		got.conforms(http.MethodPost, "/v1/tasks")
		if p := got.refused(http.StatusServiceUnavailable, core.CodeOverloaded, "accepted", "make room"); p.Retryable {
			t.Error("Retryable: got true, want false: a second request would be a second task")
		}
		a.report(a.accept(), core.Done{})
	})
}

func TestTheOverviewShowsThatTheJournalFails(t *testing.T) {
	type view struct {
		Journal struct {
			State, Reason string
			Since         time.Time
		}
	}
	var v view
	start(t, hub.Options{}, rest.Options{}).get("/v1/hub").into(http.StatusOK, &v)
	if v.Journal.State != "ok" || v.Journal.Reason != "" || !v.Journal.Since.IsZero() {
		t.Errorf("a healthy journal: got %+v, want only ok", v.Journal)
	}
	began, j := time.Now(), failingJournal{Journal: journal.NewMemory(journal.Retention{}), writable: make(chan struct{}), health: errors.New("the disk is full: make room")}
	close(j.writable)
	g := start(t, hub.Options{Journal: j}, rest.Options{})
	v = view{}
	g.get("/v1/hub").into(http.StatusOK, &v)
	if v.Journal.State != "failing" || v.Journal.Reason != j.health.Error() || v.Journal.Since.Before(began) || v.Journal.Since.After(time.Now()) {
		t.Errorf("a journal on a full disk: got %+v, want it failing since now, with the reason", v.Journal)
	}
}

func TestAnErrorThatIsNotAFaultIsInternalAndLogged(t *testing.T) {
	j := failingJournal{Journal: journal.NewMemory(journal.Retention{}), writable: make(chan struct{}), readErr: errors.New("disk on fire")}
	close(j.writable)
	h := coretest.NewHub(t, hub.Options{Journal: j})
	var log bytes.Buffer
	w := httptest.NewRecorder()
	rest.New(h, rest.Options{Principal: asOperator, Log: slog.New(slog.NewTextHandler(&log, nil))}).
		ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/tasks/x", nil))
	got := answer{t, w.Code, w.Header(), w.Body.Bytes()}
	got.conforms(http.MethodGet, "/v1/tasks/x")
	got.refused(http.StatusInternalServerError, core.CodeInternal, core.InternalMessage)
	if strings.Contains(w.Body.String(), "fire") || !strings.Contains(log.String(), "disk on fire") {
		t.Errorf("got %q answered and %q logged, want the cause only in the log", w.Body, log.String())
	}
}
