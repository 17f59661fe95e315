package service

import (
	"net/http"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/metrics"
)

// metricsHandler is what Prometheus reads.
func (s *Service) metricsHandler() http.Handler {
	return metrics.New(s.hub, metrics.Options{Version: Version, Parallax: func() (all []metrics.Traffic) {
		s.parallax.traffic.Each(func(direction, kind string, messages int64, took time.Duration) {
			all = append(all, metrics.Traffic{Direction: direction, Type: kind, Messages: uint64(messages), Seconds: took.Seconds()})
		})
		return all
	}})
}
