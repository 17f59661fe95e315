package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// The defaults of [Options].
const (
	DefaultDeadline     = 300 * time.Second
	DefaultMaxBodyBytes = 1_000_000
)

// Options make a control plane. Of the zero Options only Principal is missing.
type Options struct {
	// Principal is who sends a request (promise P7).
	Principal func(*http.Request) core.Principal
	// Deadline is how long an execution may take unless its request says.
	Deadline time.Duration
	// MaxBodyBytes bounds the body of a request.
	MaxBodyBytes int
	// Targets says where webhooks may be delivered; unset is TargetsPublic.
	Targets Targets
	// Transport delivers webhooks; nil is one that obeys Targets.
	Transport http.RoundTripper
	// Log gets what operators should know; nil discards it.
	Log *slog.Logger
}

// Control answers requests in the name of a hub. Make one with New and end it with
// Close.
type Control struct {
	http.Handler
	hub   *hub.Hub
	opts  Options
	hooks *hooks
}

// New returns the handler for the paths below /api, and begins to deliver webhooks.
func New(h *hub.Hub, opts Options) *Control {
	opts.Deadline = cmp.Or(opts.Deadline, DefaultDeadline)
	opts.MaxBodyBytes = cmp.Or(opts.MaxBodyBytes, DefaultMaxBodyBytes)
	opts.Targets = cmp.Or(opts.Targets, TargetsPublic)
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Transport == nil {
		opts.Transport = opts.Targets.transport()
	}
	c := &Control{hub: h, opts: opts, hooks: newHooks(h, opts)}
	r := chi.NewRouter()
	r.Get("/api/agents", c.known(c.getAgents))
	r.Get("/api/agents/{id}", c.known(c.getAgent))
	r.Post("/api/executions", c.known(c.postExecution))
	r.Get("/api/executions/{id}", c.known(c.getExecution))
	r.Get("/api/executions/{id}/events", c.known(c.getEvents))
	r.Get("/api/executions/{id}/events/stream", c.known(c.streamEvents))
	r.Post("/api/executions/{id}/cancel", c.known(c.postCancel))
	r.Post("/api/executions/{id}/retry", c.known(c.postRetry))
	r.NotFound(func(w http.ResponseWriter, req *http.Request) {
		c.answer(w, http.StatusNotFound, problem{req.Method + " " + req.URL.Path + " is not of this control plane: it has agents and executions", "NOT_FOUND"})
	})
	r.MethodNotAllowed(func(w http.ResponseWriter, req *http.Request) {
		use := http.MethodGet // every path has one method
		if !r.Match(chi.NewRouteContext(), use, req.URL.Path) {
			use = http.MethodPost
		}
		w.Header().Set("Allow", use)
		why := core.NewFault(core.CodeUnsupported, "%s is not for %s: use %s", req.Method, req.URL.Path, use)
		c.answer(w, http.StatusMethodNotAllowed, problem{why.Message, wire.CodeOf(why)})
	})
	c.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		// An outer chi router leaves its own idea of the path behind.
		r.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), chi.RouteCtxKey, nil)))
	})
	return c
}

// Close ends the deliveries, once the hub is closed. What is due then is still tried
// until ctx ends; what was not taken is lost, and the log says how much.
func (c *Control) Close(ctx context.Context) { c.hooks.close(ctx) }

// call is one request.
type call struct {
	w    http.ResponseWriter
	r    *http.Request
	from core.Principal
}

func (c call) id() string { return chi.URLParam(c.r, "id") }

// known finds out who sends a request. What serve returns becomes the flat error of
// the control plane.
func (c *Control) known(serve func(call) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p := c.opts.Principal(r)
		p.Dialect = cmp.Or(p.Dialect, wire.Dialect)
		err := serve(call{w, r, p})
		if err == nil || errors.Is(err, context.Canceled) && r.Context().Err() != nil {
			return
		}
		f := core.AsFault(err)
		if f.Code == core.CodeInternal {
			c.opts.Log.Error("a request failed", "path", r.URL.Path, "error", err)
		}
		c.hub.Count("parallax.control.refused")
		c.answer(w, cmp.Or(statuses[f.Code], http.StatusInternalServerError), problem{f.Message, wire.CodeOf(f)})
	}
}

// problem is an error as the control plane says it, and the code that its documents
// have for it.
type problem struct {
	Error string `json:"error"`
	Code  string `json:"code,omitempty"`
}

// statuses is the HTTP status of every Fault but those that are nobody's fault here.
var statuses = map[core.Code]int{
	core.CodeInvalid: http.StatusBadRequest, core.CodeUnknownKind: http.StatusBadRequest, core.CodeUnsupported: http.StatusBadRequest,
	core.CodeUnauthenticated: http.StatusUnauthorized, core.CodeNotAuthorized: http.StatusForbidden,
	core.CodeUnknownAgent: http.StatusNotFound, core.CodeUnknownTask: http.StatusNotFound, core.CodeUnknownDomain: http.StatusNotFound,
	core.CodeTimeout: http.StatusRequestTimeout, core.CodeConflict: http.StatusConflict, core.CodeCancelled: http.StatusConflict,
	core.CodeTooLarge: http.StatusRequestEntityTooLarge, core.CodeRateLimited: http.StatusTooManyRequests, core.CodeBudget: http.StatusTooManyRequests,
	core.CodeUnreachable: http.StatusServiceUnavailable, core.CodeOverloaded: http.StatusServiceUnavailable, core.CodeLoop: http.StatusConflict,
}

func (c *Control) answer(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":"internal error"}`)
		c.opts.Log.Error("an answer could not be encoded", "error", err)
	}
	header(w, "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a client that has gone has no use for it
}

func header(w http.ResponseWriter, media string) {
	w.Header().Set("Content-Type", media)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
}

// bodyTime is how long a client may take to send its body.
const bodyTime = 30 * time.Second

// read decodes a body, in which what this control plane does not know is let be.
func (c *Control) read(k call, v any) error {
	// A form of a web page says that it is something else.
	if media, _, err := mime.ParseMediaType(k.r.Header.Get("Content-Type")); k.r.Header.Get("Content-Type") != "" && (err != nil || media != "application/json") {
		return core.NewFault(core.CodeUnsupported, "send JSON with Content-Type: application/json")
	}
	rc := http.NewResponseController(k.w)
	_ = rc.SetReadDeadline(time.Now().Add(bodyTime)) // not every ResponseWriter has one
	body, err := io.ReadAll(http.MaxBytesReader(k.w, k.r.Body, int64(c.opts.MaxBodyBytes)))
	_ = rc.SetReadDeadline(time.Time{})
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return core.NewFault(core.CodeTooLarge, "the body has more than %d bytes: send less", over.Limit)
	case err != nil:
		return core.NewFault(core.CodeInvalid, "the body could not be read to its end").Because(err)
	}
	if err := strictjson.Decode(body, strictjson.Limits{Bytes: c.opts.MaxBodyBytes}, v); err != nil {
		return core.NewFault(core.CodeInvalid, "%s", err)
	}
	return nil
}

// session begins the session that a request is to the hub. The caller ends it.
func (c *Control) session(k call) *hub.Session {
	return c.hub.Connect(hub.Identity{Principal: k.from, Dialect: wire.Dialect, Deadline: c.opts.Deadline})
}

func leave(s *hub.Session) { s.Close(core.NewFault(core.CodeUnreachable, "the HTTP request ended")) }
