package web

import (
	"net/http"
	"slices"
	"strings"
)

// The server answers HEAD and OPTIONS for every route, so that routes serve neither: they serve
// GET, and refuse other methods with 405 and the header Allow.

// asGet passes a HEAD to the routes as a GET; net/http sends no body with its answer. A path of
// Options.NoHead keeps its HEAD, which its route refuses.
func (s *Server) asGet(r *http.Request) {
	if r.Method == http.MethodHead && s.hasHead(r) {
		r.Method = http.MethodGet
	}
}

// hasHead reports whether the path of a request has HEAD, if it has GET.
func (s *Server) hasHead(r *http.Request) bool { return !covers(s.opts.NoHead, r.URL.Path) }

// complete adds the methods to an Allow header that the server answers.
func complete(allow string, head bool) string {
	methods := strings.FieldsFunc(allow, func(r rune) bool { return r == ',' || r == ' ' })
	if get := slices.Index(methods, http.MethodGet); head && get >= 0 && !slices.Contains(methods, http.MethodHead) {
		methods = slices.Insert(methods, get+1, http.MethodHead)
	}
	if !slices.Contains(methods, http.MethodOptions) {
		methods = append(methods, http.MethodOptions)
	}
	return strings.Join(methods, ", ")
}

// refuseMethod completes the Allow header of a 405. If the client asked for OPTIONS, that
// is the answer: refuseMethod then sends 204 and reports true.
func (a *answer) refuseMethod() (answered bool) {
	h := a.Header()
	allow := h.Get("Allow")
	if allow == "" {
		return false
	}
	h.Set("Allow", complete(allow, a.head))
	if !a.options {
		return false
	}
	h.Del("Content-Type")
	h.Del("Content-Length")
	a.begun, a.sealed = true, true
	a.ResponseWriter.WriteHeader(http.StatusNoContent)
	return true
}
