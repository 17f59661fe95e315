package service

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Where a program asks for the health of the hub: as Kubernetes has it, and as coven-gateway
// does, whose deployments and health command ask there.
const (
	HealthPath = "/healthz"
	ReadyPath  = "/readyz"

	gatewayHealth = "/health"
	gatewayReady  = "/health/ready"
)

// alwaysAnswered are the paths that are answered even when there is no room for another
// connection.
var alwaysAnswered = []string{HealthPath, ReadyPath, gatewayHealth, gatewayReady}

// mountHealth tells everybody how the hub is, and nothing else of it. The answers at the
// paths of coven-gateway are its own to the byte: it is ready once an agent is connected.
func (s *Service) mountHealth(h *httpListener) {
	h.open(alwaysAnswered...)
	h.Get(HealthPath, func(w http.ResponseWriter, _ *http.Request) { plainText(w, http.StatusOK, "ok\n") })
	h.Get(ReadyPath, func(w http.ResponseWriter, _ *http.Request) {
		if err := s.notReady(); err != nil {
			plainText(w, http.StatusServiceUnavailable, err.Error()+"\n")
			return
		}
		plainText(w, http.StatusOK, "ready\n")
	})
	h.Get(gatewayHealth, func(w http.ResponseWriter, _ *http.Request) { plainText(w, http.StatusOK, "OK") })
	h.Get(gatewayReady, func(w http.ResponseWriter, _ *http.Request) {
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

// errStopping is why a hub is not ready that is told to stop.
var errStopping = errors.New("stopping")

// notReady returns why the hub should get nothing new, in a sentence for operators, or nil.
func (s *Service) notReady() error {
	if s.draining.Load() {
		return errStopping
	}
	return s.hub.JournalHealth().Err
}

// journalWatch is how often the journal is looked at, so that the log says in time what
// only looking tells.
const journalWatch = 2 * time.Second

// watchJournal looks at the journal until the service ends.
func (s *Service) watchJournal() {
	tick := time.NewTicker(journalWatch)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.hub.JournalHealth()
		case <-s.ctx.Done():
			return
		}
	}
}
