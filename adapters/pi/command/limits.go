package command

// rejection is why a command or a connection was not let in.
type rejection uint8

// The reasons, each counted by itself.
const (
	_ rejection = iota
	OverSessions
	OverSize
	beyondRate
	beyondAll
	OverConnections
	beyondAnswers
	beyondPending
	beyondInFlight
	BreakerOpen
	rejections
)

// String is the name of the rejection in the counters of the hub.
func (r rejection) String() string {
	return [...]string{
		"", "sessions", "size", "rate", "global_rate", "connections", "answer_rate", "pending", "in_flight", "breaker",
	}[r]
}

// Reject counts a rejection, in get_metrics and in the counters of the hub.
func (e *Engine) Reject(why rejection) {
	e.rejected[why].Add(1)
	e.host.Count("rejected." + why.String())
}

// TooManyInFlight is what is told beyond the bound of commands in flight.
const TooManyInFlight = "Server busy - too many concurrent commands. Please retry."

// overLimit holds a valid command that is about to be executed for the first time
// against the limits that are no connection's own, and counts it. It returns why the
// command is not admitted: such a one has no lifecycle (section 4.2), although the
// reference gives it a command_finished.
func (e *Engine) overLimit(of Namespace, c Command) string {
	// What all could have at once is always let in: an abort finds its way past prompts.
	large := c.size > e.opts.InFlightBytes/e.opts.MaxInFlight && e.inFlightBytes > 0 && e.inFlightBytes+c.size > e.opts.InFlightBytes
	if len(e.inFlight) >= e.opts.MaxInFlight || large {
		e.Reject(beyondInFlight)
		return TooManyInFlight
	}
	why, text := e.rates.take(of, c)
	if why != 0 {
		e.Reject(why)
	}
	return text
}

// Rejections returns how many were not let in for a reason, by what the reference calls it;
// the last four names are ours.
func (e *Engine) Rejections() map[string]int64 {
	all := make(map[string]int64, len(rejectedAs))
	for why, name := range rejectedAs {
		all[name] = e.rejected[why].Load()
	}
	return all
}

var rejectedAs = map[rejection]string{
	OverSessions: "sessionLimit", OverSize: "messageSize", beyondRate: "rateLimit", beyondAll: "globalRateLimit",
	OverConnections: "connectionLimit", beyondAnswers: "extensionUIResponseRateLimit",
	beyondPending: "pendingLimit", beyondInFlight: "inFlightLimit", BreakerOpen: "circuitOpen",
}
