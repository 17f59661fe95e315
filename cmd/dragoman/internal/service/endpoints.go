package service

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"
)

// Endpoint is one thing that a peer can call at a listener.
type Endpoint struct {
	// Listener is the setting with its address.
	Listener string
	// Method is that of HTTP; "" for gRPC, "*" where the handler takes several.
	Method string
	// Path is the path of HTTP as it is mounted, or the full name of a gRPC method.
	Path string
}

// Endpoints returns everything that is mounted on the listeners with an address, in order.
func (s *Service) Endpoints() []Endpoint { return slices.Clone(s.endpoints) }

// endpoints returns what is mounted. A path for all methods is one endpoint.
func (l *listeners) endpoints() (all []Endpoint) {
	if l.http != nil {
		all = append(all, mounted("http_addr", l.http)...)
	}
	if l.pi != nil {
		all = append(all, mounted("pi_addr", l.pi)...)
	}
	if l.grpc != nil {
		for _, method := range l.grpc.Methods() {
			all = append(all, Endpoint{Listener: "grpc_addr", Path: method})
		}
	}
	return all
}

func mounted(listener string, r chi.Routes) []Endpoint {
	methods := map[string][]string{}
	_ = chi.Walk(r, func(method, path string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		methods[path] = append(methods[path], method)
		return nil
	})
	var all []Endpoint
	for path, of := range methods {
		if len(of) > 4 { // mounted for all methods
			of = []string{"*"}
		}
		for _, method := range of {
			all = append(all, Endpoint{listener, method, path})
		}
	}
	slices.SortFunc(all, func(a, b Endpoint) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method)) })
	return all
}
