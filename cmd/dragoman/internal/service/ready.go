package service

import (
	"errors"
	"net/http"
	"time"
)

// errStopping is what a hub says that is told to stop.
var errStopping = errors.New("stopping")

// notReady returns why the hub should get nothing new, in a sentence for operators, or
// nil. Every door that tells whether the hub is ready asks it.
func (s *Service) notReady() error {
	if s.draining.Load() {
		return errStopping
	}
	return s.hub.JournalHealth().Err
}

func (s *Service) serveReady(w http.ResponseWriter, _ *http.Request) {
	if err := s.notReady(); err != nil {
		plainText(w, http.StatusServiceUnavailable, err.Error()+"\n")
		return
	}
	plainText(w, http.StatusOK, "ready\n")
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
