package command

// rejection is why a command or a connection was rejected.
type rejection uint8

// The reasons, each counted by itself.
const (
	_ rejection = iota
	OverSessions
	OverSize
	overRate
	overGlobalRate
	OverConnections
	overAnswers
	overPending
	overInFlight
	BreakerOpen
	rejections
)

// rejectionNames are the names of the rejections in the counters of the hub and in
// get_metrics; the last three of the latter are not in the reference.
var rejectionNames = [rejections]struct{ counter, metric string }{
	OverSessions:    {"sessions", "sessionLimit"},
	OverSize:        {"size", "messageSize"},
	overRate:        {"rate", "rateLimit"},
	overGlobalRate:  {"global_rate", "globalRateLimit"},
	OverConnections: {"connections", "connectionLimit"},
	overAnswers:     {"answer_rate", "extensionUIResponseRateLimit"},
	overPending:     {"pending", "pendingLimit"},
	overInFlight:    {"in_flight", "inFlightLimit"},
	BreakerOpen:     {"breaker", "circuitOpen"},
}

// Reject counts a rejection, in get_metrics and in the counters of the hub.
func (e *Engine) Reject(why rejection) {
	e.rejected[why].Add(1)
	e.host.Count("rejected." + rejectionNames[why].counter)
}

// Rejections returns how many commands and connections were rejected, by the names of
// get_metrics.
func (e *Engine) Rejections() map[string]int64 {
	all := make(map[string]int64, len(rejectionNames))
	for why := OverSessions; why < rejections; why++ {
		all[rejectionNames[why].metric] = e.rejected[why].Load()
	}
	return all
}

// TooManyInFlight is the error of a command beyond the limit of commands in flight.
const TooManyInFlight = "Server busy - too many concurrent commands. Please retry."

// overLimit checks a new command against the limits of the engine and its rates, and
// counts it in the rates. It returns why the command is not admitted. Such a command has
// no lifecycle (section 4.2), although the reference sends its command_finished.
func (e *Engine) overLimit(of Namespace, c Command) string {
	// A frame of an average share always fits, so that an abort gets past large prompts.
	large := c.size > e.opts.InFlightBytes/e.opts.MaxInFlight && e.inFlightBytes > 0 && e.inFlightBytes+c.size > e.opts.InFlightBytes
	if len(e.inFlight) >= e.opts.MaxInFlight || large {
		e.Reject(overInFlight)
		return TooManyInFlight
	}
	why, text := e.rates.take(of, c)
	if why != 0 {
		e.Reject(why)
	}
	return text
}
