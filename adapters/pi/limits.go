package pi

// rejection is why a command or a connection was not let in.
type rejection uint8

// The reasons, each counted by itself.
const (
	_ rejection = iota
	beyondSessions
	beyondSize
	beyondRate
	beyondAll
	beyondConnections
	beyondAnswers
	beyondPending
	beyondInFlight
	breakerOpen
	rejections
)

// String is the name of the rejection in the counters of the hub.
func (r rejection) String() string {
	return [...]string{
		"", "sessions", "size", "rate", "global_rate", "connections", "answer_rate", "pending", "in_flight", "breaker",
	}[r]
}

// reject counts a rejection, in get_metrics and in the counters of the hub.
func (s *Server) reject(why rejection) {
	s.rejected[why].Add(1)
	s.count("rejected." + why.String())
}

// tooMany is what is told beyond the bound of commands in flight.
const tooMany = "Server busy - too many concurrent commands. Please retry."

// overLimit holds a valid command that is about to be executed for the first time
// against the limits that are no connection's own, and counts it. It returns why the
// command is not admitted: such a one has no lifecycle (section 4.2), although the
// reference gives it a command_finished.
func (s *Server) overLimit(of space, c command) string {
	// What all could have at once is always let in: an abort finds its way past prompts.
	large := c.size > s.opts.InFlightBytes/s.opts.MaxInFlight && s.flyingBytes > 0 && s.flyingBytes+c.size > s.opts.InFlightBytes
	if len(s.flying) >= s.opts.MaxInFlight || large {
		s.reject(beyondInFlight)
		return tooMany
	}
	why, text := s.rates.take(of, c)
	if why != 0 {
		s.reject(why)
	}
	return text
}
