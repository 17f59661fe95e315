package e2e

import (
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi"
)

// piSetting changes a setting of the pi-server. It reports whether the setting exists.
func piSetting(o *pi.Options, name string, number int) bool {
	switch name {
	case "pi seconds of a prompt":
		o.Commands.PromptTimeout = time.Duration(number) * time.Second
	case "pi bash":
		o.Bash = number > 0
	case "pi commands a minute":
		o.Commands.Rates.Client = number
	case "pi commands a minute for a session":
		o.Commands.Rates.Session = number
	case "pi server commands a minute":
		o.Commands.Rates.Server = number
	case "pi answers a minute":
		o.Commands.Rates.Answers = number
	case "pi failures of an agent":
		o.Breakers.Agent.Failures = number
	case "pi retries":
		o.Retries = number
	case "pi sessions":
		o.MaxSessions = number
	case "pi seconds of a session":
		o.SessionLifetime = time.Duration(number) * time.Second
	default:
		return false
	}
	return true
}
