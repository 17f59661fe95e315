package service

import (
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"
)

// The paths at which coven-gateway tells how it is. Its deployments, and its own health
// command, ask there.
const (
	gatewayHealth = "/health"
	gatewayReady  = "/health/ready"
)

// mountGatewayHealth answers as coven-gateway does, to the byte: it is ready once an
// agent is connected.
func (s *Service) mountGatewayHealth(r chi.Router) {
	r.Get(gatewayHealth, func(w http.ResponseWriter, _ *http.Request) { plainText(w, http.StatusOK, "OK") })
	r.Get(gatewayReady, func(w http.ResponseWriter, _ *http.Request) {
		err, agents := s.notReady(), s.hub.Totals().Agents
		switch {
		case err != nil:
			plainText(w, http.StatusServiceUnavailable, err.Error())
		case agents == 0:
			plainText(w, http.StatusServiceUnavailable, "no agents connected")
		default:
			plainText(w, http.StatusOK, fmt.Sprintf("ready (%d agents)", agents))
		}
	})
}
