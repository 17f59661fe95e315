package rest

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/schemas"
)

// New returns the handler for the paths below /v1. It may be mounted in another router that
// does not change the path of the request.
func New(h *hub.Hub, opts Options) http.Handler {
	a := &api{hub: h, opts: opts.withDefaults()}
	router := a.routes()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// An outer chi router has set its own path.
		if r.Context().Value(chi.RouteCtxKey) != nil {
			r = r.WithContext(context.WithValue(r.Context(), chi.RouteCtxKey, nil))
		}
		router.ServeHTTP(w, r)
	})
}

// api answers requests for a hub.
type api struct {
	hub  *hub.Hub
	opts Options
}

// routes are all routes with their query parameters, as described by the OpenAPI document.
func (a *api) routes() chi.Router {
	r := chi.NewRouter()
	r.NotFound(a.notFound)
	r.MethodNotAllowed(a.notAllowed(r))
	r.Get("/v1/openapi.json", a.withParameters(a.openAPI))
	r.Get("/v1/hub", a.withPrincipal(a.getHub))
	r.Post("/v1/hub/drain", a.withPrincipal(a.postDrain))
	r.Post("/v1/hubs/{id}/forget", a.withPrincipal(a.postForget))
	r.Get("/v1/usage", a.withPrincipal(a.getUsage, "by"))
	r.Get("/v1/audit", a.withPrincipal(a.getAudit, "hub", "after", "limit"))
	r.Get("/v1/approvals", a.withPrincipal(a.getApprovals))
	r.Get("/v1/questions", a.withPrincipal(a.getQuestions, "thread"))
	r.Post("/v1/questions/{id}/answer", a.withPrincipal(a.postAnswer))
	r.Get("/v1/agents", a.withPrincipal(a.getAgents, "limit", "after"))
	r.Get("/v1/agents/{id}", a.withPrincipal(a.getAgent))
	r.Patch("/v1/agents/{id}", a.withPrincipal(a.patchAgent))
	r.Post("/v1/agents/{id}/restart", a.withPrincipal(a.postRestart))
	r.Get("/v1/principals", a.withPrincipal(a.getPrincipals))
	r.Post("/v1/principals/{id}/approve", a.withPrincipal(a.postApprove))
	r.Post("/v1/principals/{id}/revoke", a.withPrincipal(a.postRevoke))
	r.Get("/v1/packs", a.withPrincipal(a.getPacks))
	r.Get("/v1/threads", a.withPrincipal(a.getThreads, "state", "agent", "before", "limit"))
	r.Get("/v1/threads/{id}", a.withPrincipal(a.getThread))
	r.Get("/v1/events", a.withPrincipal(a.getAllEvents, "from"))
	r.Post("/v1/notices", a.withPrincipal(a.postNotice, "wait"))
	r.Get("/v1/tasks", a.withPrincipal(a.getTasks, "state", "agent", "from", "thread", "cause", "text", "before", "limit"))
	r.Post("/v1/tasks", a.withPrincipal(a.postTask, "wait"))
	r.Get("/v1/tasks/{id}", a.withPrincipal(a.getTask))
	r.Get("/v1/tasks/{id}/readers", a.withPrincipal(a.getReaders))
	r.Get("/v1/tasks/{id}/frames", a.withPrincipal(a.getFrames))
	r.Get("/v1/tasks/{id}/events", a.withPrincipal(a.getEvents, "from", "follow"))
	r.Post("/v1/tasks/{id}/cancel", a.withPrincipal(a.postCancel))
	r.Post("/v1/tasks/{id}/inject", a.withPrincipal(a.postInject, "wait"))
	r.Post("/v1/tasks/{id}/decisions", a.withPrincipal(a.postDecision))
	return r
}

// call is a request from a known principal.
type call struct {
	w    http.ResponseWriter
	r    *http.Request
	from core.Principal
}

// withPrincipal passes a request to serve when its principal is known and it has no query
// parameters but those of the names. An error of serve becomes a problem document; serve returns
// nil if it has answered.
func (a *api) withPrincipal(serve func(call) error, parameters ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p, err := a.opts.Principal(r)
		if err == nil && p.ID == "" {
			err = core.NewFault(core.CodeUnauthenticated, "the request is not authenticated: send a token")
		}
		if err == nil {
			err = checkParameters(r, parameters)
		}
		if err == nil {
			p.Dialect = cmp.Or(p.Dialect, Name)
			err = serve(call{w, r, p})
		}
		if err != nil && !(errors.Is(err, context.Canceled) && r.Context().Err() != nil) { // the client is still there
			a.refuse(w, r, err)
		}
	}
}

// withParameters passes a request of anybody to serve when it has no query parameters but those
// of the names.
func (a *api) withParameters(serve http.HandlerFunc, parameters ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := checkParameters(r, parameters); err != nil {
			a.refuse(w, r, err)
			return
		}
		serve(w, r)
	}
}

// connect opens a session of the hub for a request. The caller ends it with leave.
func (a *api) connect(c call) *hub.Session { return a.hub.Connect(a.identity(c)) }

// identity returns who gives the command of a request.
func (a *api) identity(c call) hub.Identity {
	return hub.Identity{Principal: c.from, Dialect: Name, Deadline: a.opts.Deadline, Frames: frame.RingOf(c.r.Context())}
}

func leave(s *hub.Session) { s.Close(requestEnded) }

var requestEnded = core.NewFault(core.CodeUnreachable, "the HTTP request ended")

// id returns the id in the path, unescaped.
func (c call) id() string {
	id := chi.URLParam(c.r, "id")
	if c.r.URL.RawPath == "" {
		return id // it is already unescaped
	}
	plain, _ := url.PathUnescape(id) // net/http has refused invalid escapes
	return plain
}

// task returns the task in the path, if the sender may read it.
func (a *api) task(c call) (*task.Task, error) {
	return a.hub.Task(c.r.Context(), c.from, core.TaskID(c.id()))
}

func (a *api) openAPI(w http.ResponseWriter, _ *http.Request) {
	a.write(w, http.StatusOK, jsonType, schemas.OpenAPI)
}
