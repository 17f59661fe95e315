package rest

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// statuses are the HTTP statuses of Faults.
var statuses = map[core.Code]int{
	core.CodeInvalid:         http.StatusBadRequest,
	core.CodeUnauthenticated: http.StatusUnauthorized,
	core.CodeNotAuthorized:   http.StatusForbidden,
	core.CodeUnknownAgent:    http.StatusNotFound,
	core.CodeUnknownTask:     http.StatusNotFound,
	core.CodeUnreachable:     http.StatusBadGateway,
	core.CodeUnknownDomain:   http.StatusNotFound,
	core.CodeUnknownKind:     http.StatusBadRequest,
	core.CodeUnsupported:     http.StatusUnprocessableEntity,
	core.CodeOverloaded:      http.StatusServiceUnavailable,
	core.CodeRateLimited:     http.StatusTooManyRequests,
	core.CodeTooLarge:        http.StatusRequestEntityTooLarge,
	core.CodeTimeout:         http.StatusGatewayTimeout,
	core.CodeCancelled:       http.StatusConflict,
	core.CodeConflict:        http.StatusConflict,
	core.CodeLoop:            http.StatusLoopDetected,
	core.CodeBudget:          http.StatusTooManyRequests,
	core.CodeInternal:        http.StatusInternalServerError,
}

// problem is a problem document (RFC 9457). Its type is about:blank; the code is the kind
// of problem.
type problem struct {
	Type      string    `json:"type"`
	Title     string    `json:"title"`
	Status    int       `json:"status"`
	Detail    string    `json:"detail"`
	Code      core.Code `json:"code"`
	Retryable bool      `json:"retryable"`
	// Task is the task that records the refusal, if there is one.
	Task core.TaskID `json:"task,omitempty"`
}

// refusal is an error with details that a Fault does not have.
type refusal struct {
	err error
	// status replaces that of the Fault, unless it is 0.
	status int
	task   core.TaskID
}

func (f *refusal) Error() string { return f.err.Error() }

func (f *refusal) Unwrap() error { return f.err }

// refuse answers with the problem document of err. An error that is not a Fault is logged and
// reported as internal.
func (a *api) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if cause := internal(err); cause != nil {
		a.opts.Log.Error("a request failed", "method", r.Method, "path", r.URL.Path, "error", cause)
	}
	if seconds := core.AsFault(err).RetryAfter.Whole(); seconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	p := problemOf(err)
	a.hub.Count("rest.refused." + string(p.Code))
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	b, _ := json.Marshal(p) // strings, a number and a boolean always encode
	a.write(w, p.Status, problemType, append(b, '\n'))
}

// internal returns the cause of an error that is told as internal, which only the log has; else nil.
func internal(err error) error {
	f := core.AsFault(err)
	if f.Code != core.CodeInternal {
		return nil
	}
	if hidden := errors.Unwrap(f); hidden != nil {
		return hidden
	}
	return err
}

func problemOf(err error) problem {
	f := core.AsFault(err)
	p := problem{Type: "about:blank", Status: statuses[f.Code], Detail: f.Message, Code: f.Code, Retryable: f.Retryable}
	if p.Status == 0 {
		p.Status, p.Code = http.StatusInternalServerError, core.CodeInternal
	}
	if errors.Is(err, hub.ErrStopping) {
		p.Status = http.StatusServiceUnavailable
	}
	var more *refusal
	if errors.As(err, &more) {
		p.Task = more.task
		if more.status != 0 {
			p.Status = more.status
		}
	}
	p.Title = http.StatusText(p.Status)
	return p
}

func (a *api) notFound(w http.ResponseWriter, r *http.Request) {
	a.refuse(w, r, &refusal{
		err:    core.NewFault(core.CodeUnsupported, "no route %s: see /v1/openapi.json", r.URL.Path),
		status: http.StatusNotFound,
	})
}

// notAllowed answers requests with a method that the path does not have.
func (a *api) notAllowed(router chi.Routes) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var methods []string
		for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPatch} {
			path := r.URL.RawPath
			if path == "" {
				path = r.URL.Path
			}
			if router.Match(chi.NewRouteContext(), m, path) {
				methods = append(methods, m)
			}
		}
		allow := strings.Join(methods, ", ")
		w.Header().Set("Allow", allow)
		a.refuse(w, r, &refusal{
			err:    core.NewFault(core.CodeUnsupported, "method %s is not allowed for %s: use %s", r.Method, r.URL.Path, allow),
			status: http.StatusMethodNotAllowed,
		})
	}
}
