package pi

import (
	"slices"
	"time"
)

// recentEvent is an event of the server that was told, in the shape of the reference
// (facts, section 4.4).
type recentEvent struct {
	Name      string            `json:"name"`
	Type      string            `json:"type"`
	Tags      map[string]string `json:"tags"`
	Timestamp int64             `json:"timestamp"` // in milliseconds
}

// maxRecent is how many of them get_metrics tells, the latest last.
const maxRecent = 100

// happened notes that an event of the server was told. What it was about is not
// kept: get_metrics is for everybody.
func (s *Server) happened(event string) {
	if len(s.recent) == maxRecent {
		s.recent = slices.Delete(s.recent, 0, 1)
	}
	s.recent = append(s.recent, recentEvent{"pi_server_event_" + event, "event", map[string]string{"event": event}, time.Now().UnixMilli()})
}
