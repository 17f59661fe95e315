package agent

// HubEnd says that it was the hub that ended an agent's connection, and not the agent.
type HubEnd struct {
	// Err is why.
	Err error
	// Final says that the hub does not want the agent, so that there is no use in coming again.
	Final bool
}

// Error implements error.
func (e *HubEnd) Error() string {
	if e.Final {
		return e.Err.Error()
	}
	return "the connection to the hub has ended: " + e.Err.Error()
}

// Unwrap returns Err.
func (e *HubEnd) Unwrap() error { return e.Err }
