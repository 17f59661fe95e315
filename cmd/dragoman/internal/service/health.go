package service

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/metrics"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/transports/web"
)

// The paths of the health checks: those of Kubernetes, and those of coven-gateway for its
// deployments and its health command.
const (
	HealthPath = "/healthz"
	ReadyPath  = "/readyz"

	gatewayHealth = "/health"
	gatewayReady  = "/health/ready"
)

// alwaysAnswered are the paths that are answered even beyond the connection limit.
var alwaysAnswered = []string{HealthPath, ReadyPath, gatewayHealth, gatewayReady}

// mountHealth serves the health checks, which need no token. Those of coven-gateway answer
// byte by byte as it does: ready means that an agent is connected.
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
		err, agents := s.notReady(), s.hub.Totals(hub.ComponentIdentity("health", "").Principal).Agents
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

// errStopping is the reason that a stopping hub is not ready.
var errStopping = errors.New("stopping")

// notReady returns why the hub should get no new work, as a sentence for operators, or nil: the hub decides it,
// as it does for every request.
func (s *Service) notReady() error {
	if s.draining.Load() {
		return errStopping
	}
	if err := s.hub.NotReady(); err != nil {
		return errors.New(core.AsFault(err).Message)
	}
	return nil
}

// journalWatch is the time between two checks of the journal. Some failures are found only by
// checking.
const journalWatch = 2 * time.Second

// watchJournal checks the journal until the service ends. The service fails once another hub has
// taken the journal over.
func (s *Service) watchJournal() {
	tick := time.NewTicker(journalWatch)
	defer tick.Stop()
	var deposed <-chan struct{}
	if shared, is := s.journal.(journal.Shared); is {
		deposed = shared.Deposed()
	}
	for {
		select {
		case <-tick.C:
			s.hub.JournalHealth()
		case <-deposed:
			deposed = nil
			err := s.journal.Health()
			if !s.config.Clustered() {
				err = fmt.Errorf("%w: hubs that share a NATS server need a name each (journal.name)", err)
			}
			s.fail(err)
		case <-s.ctx.Done():
			return
		}
	}
}

// MetricsPath is where Prometheus reads the metrics.
const MetricsPath = "/metrics"

// seesAll reports whether a principal may read what is about everybody: where there are rules,
// those who may operate; without rules everybody who may connect.
func (s *Service) seesAll(p core.Principal) bool {
	return s.rights.Table() == nil || s.rights.May(p, core.RightOperate, policy.Object{})
}

// forOperators refuses those who may not read what is about everybody.
func (s *Service) forOperators(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.seesAll(principalOf(r.Context(), core.Principal{Operator: true})) {
			web.Problem(w, http.StatusForbidden, string(core.CodeNotAuthorized), "the metrics are about everybody, and for those who may operate the hub")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// metricsHandler serves the metrics for Prometheus.
func (s *Service) metricsHandler() http.Handler {
	return metrics.New(s.hub, metrics.Options{Version: Version, Children: s.children, Translations: translations(), Parallax: func() (all []metrics.Traffic) {
		s.parallax.traffic.Each(func(direction, kind string, messages int64, took time.Duration) {
			all = append(all, metrics.Traffic{Direction: direction, Type: kind, Messages: uint64(messages), Seconds: took.Seconds()})
		})
		return all
	}})
}
