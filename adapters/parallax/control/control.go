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
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/webhook"
)

// The defaults of [Options].
const (
	DefaultDeadline     = 300 * time.Second
	DefaultMaxBodyBytes = 1_000_000
)

// Options configure a control plane. Only Principal is required.
type Options struct {
	// Principal returns the sender of a request (promise P7).
	Principal func(*http.Request) core.Principal
	// Deadline is the default deadline of an execution.
	Deadline time.Duration
	// MaxBodyBytes bounds the body of a request.
	MaxBodyBytes int
	// Targets restricts the targets of webhooks; unset is webhook.TargetsPublic.
	Targets webhook.Targets
	// Transport delivers webhooks; nil is one that enforces Targets.
	Transport http.RoundTripper
	// Log gets messages for operators; nil discards them.
	Log *slog.Logger
}

// Control serves the REST interface of a hub. Make one with New and end it with Close.
type Control struct {
	http.Handler
	hub      *hub.Hub
	opts     Options
	webhooks *webhooks
}

// New returns the handler for the paths below /api, and starts to deliver webhooks.
func New(h *hub.Hub, opts Options) *Control {
	opts.Deadline = cmp.Or(opts.Deadline, DefaultDeadline)
	opts.MaxBodyBytes = cmp.Or(opts.MaxBodyBytes, DefaultMaxBodyBytes)
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	c := &Control{hub: h, opts: opts, webhooks: newWebhooks(h, opts)}
	c.answerWebhooks()
	r := chi.NewRouter()
	r.Get("/api/agents", c.handle(c.getAgents))
	r.Get("/api/agents/{id}", c.handle(c.getAgent))
	r.Post("/api/executions", c.handle(c.postExecution))
	r.Get("/api/executions/{id}", c.handle(c.getExecution))
	r.Get("/api/executions/{id}/events", c.handle(c.getEvents))
	r.Get("/api/executions/{id}/events/stream", c.handle(c.streamEvents))
	r.Post("/api/executions/{id}/cancel", c.handle(c.postCancel))
	r.Post("/api/executions/{id}/retry", c.handle(c.postRetry))
	r.NotFound(func(w http.ResponseWriter, req *http.Request) {
		c.writeJSON(w, http.StatusNotFound, errorBody{req.Method + " " + req.URL.Path + " is unknown: this control plane has agents and executions", "NOT_FOUND"})
	})
	r.MethodNotAllowed(func(w http.ResponseWriter, req *http.Request) {
		allowed := http.MethodGet // every path has one method
		if !r.Match(chi.NewRouteContext(), allowed, req.URL.Path) {
			allowed = http.MethodPost
		}
		w.Header().Set("Allow", allowed)
		f := core.NewFault(core.CodeUnsupported, "%s is not for %s: use %s", req.Method, req.URL.Path, allowed)
		c.writeJSON(w, http.StatusMethodNotAllowed, errorBody{f.Message, wire.CodeOf(f)})
	})
	c.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		// The route context of an outer chi router has another path.
		r.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), chi.RouteCtxKey, nil)))
	})
	return c
}

// Close ends the deliveries once the hub is closed. Deliveries that are due are tried
// until ctx ends; the others are lost, and the log has their number.
func (c *Control) Close(ctx context.Context) { c.webhooks.close(ctx) }

// request is one HTTP request.
type request struct {
	w    http.ResponseWriter
	r    *http.Request
	from core.Principal
}

func (q request) id() string { return chi.URLParam(q.r, "id") }

// handle returns a handler that writes the error of serve.
func (c *Control) handle(serve func(request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p := c.opts.Principal(r)
		p.Dialect = cmp.Or(p.Dialect, wire.Dialect)
		err := serve(request{w, r, p})
		if err == nil || errors.Is(err, context.Canceled) && r.Context().Err() != nil {
			return
		}
		f := core.AsFault(err)
		if f.Code == core.CodeInternal {
			c.opts.Log.Error("a request failed", "path", r.URL.Path, "error", err)
		}
		c.hub.Count("parallax.control.refused")
		if seconds := f.RetrySeconds(); seconds > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(seconds))
		}
		c.writeJSON(w, cmp.Or(statuses[f.Code], http.StatusInternalServerError), errorBody{f.Message, wire.CodeOf(f)})
	}
}

// errorBody is the body of an error, with the code of the Parallax documentation.
type errorBody struct {
	Error string `json:"error"`
	Code  string `json:"code,omitempty"`
}

// statuses maps the codes of a Fault to HTTP statuses. The others are 500.
var statuses = map[core.Code]int{
	core.CodeInvalid: http.StatusBadRequest, core.CodeUnknownKind: http.StatusBadRequest, core.CodeUnsupported: http.StatusBadRequest,
	core.CodeUnauthenticated: http.StatusUnauthorized, core.CodeNotAuthorized: http.StatusForbidden,
	core.CodeUnknownAgent: http.StatusNotFound, core.CodeUnknownTask: http.StatusNotFound, core.CodeUnknownDomain: http.StatusNotFound,
	core.CodeTimeout: http.StatusRequestTimeout, core.CodeConflict: http.StatusConflict, core.CodeCancelled: http.StatusConflict,
	core.CodeTooLarge: http.StatusRequestEntityTooLarge, core.CodeRateLimited: http.StatusTooManyRequests, core.CodeBudget: http.StatusTooManyRequests,
	core.CodeUnreachable: http.StatusServiceUnavailable, core.CodeOverloaded: http.StatusServiceUnavailable, core.CodeLoop: http.StatusConflict,
}

func (c *Control) writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":"internal error"}`)
		c.opts.Log.Error("an answer could not be encoded", "error", err)
	}
	setHeader(w, "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a client that has gone does not need it
}

func setHeader(w http.ResponseWriter, media string) {
	w.Header().Set("Content-Type", media)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
}

// bodyTimeout is the time within which a client must send its body.
const bodyTimeout = 30 * time.Second

// readBody decodes a body. It ignores unknown members.
func (c *Control) readBody(q request, v any) error {
	// An HTML form cannot send this type.
	if header := q.r.Header.Get("Content-Type"); header != "" {
		if media, _, err := mime.ParseMediaType(header); err != nil || media != "application/json" {
			return core.NewFault(core.CodeUnsupported, "send JSON with Content-Type: application/json")
		}
	}
	rc := http.NewResponseController(q.w)
	_ = rc.SetReadDeadline(time.Now().Add(bodyTimeout)) // not every ResponseWriter has one
	body, err := io.ReadAll(http.MaxBytesReader(q.w, q.r.Body, int64(c.opts.MaxBodyBytes)))
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

// connect returns a hub session for a request. The caller must call disconnect.
func (c *Control) connect(q request) *hub.Session {
	return c.hub.Connect(hub.Identity{Principal: q.from, Dialect: wire.Dialect, Deadline: c.opts.Deadline, FixedDeadline: true, Frames: frame.RingOf(q.r.Context())})
}

func disconnect(s *hub.Session) {
	s.Close(core.NewFault(core.CodeUnreachable, "the HTTP request ended"))
}
