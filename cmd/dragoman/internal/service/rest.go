package service

import (
	"net/http"

	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/core"
)

// mountREST serves the hub's own interface.
func (s *Service) mountREST(l *listeners) {
	if l.http == nil {
		return
	}
	l.http.Mount("/v1", s.framed(rest.Name, rest.New(s.hub, rest.Options{
		Principal: func(r *http.Request) (core.Principal, error) {
			return principalOf(r.Context(), core.Principal{ID: "local", Dialect: "rest", Operator: true}), nil
		},
		Version: Version, Addresses: s.bound.reachedBy, Packs: s.Packs, SeesAll: s.seesAll, Cluster: s.Cluster(), Translations: translations(), Log: s.log,
		Deadline: s.config.REST.Deadline, MaxBodyBytes: s.config.REST.BodyBytes,
	})))
}
