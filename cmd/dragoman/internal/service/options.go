package service

import (
	"path/filepath"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// journalPath is where the journal is: the data directory, the address of a NATS server, or
// "" of one in memory.
func journalPath(c config.Config) string {
	if c.Journal.NATSURL != "" {
		return nats.Redacted(c.Journal.NATSURL)
	}
	if c.DataDir == "" {
		return ""
	}
	path, err := filepath.Abs(c.DataDir)
	if err != nil {
		return c.DataDir
	}
	return path
}

// orNever makes of a zero that a person wrote what the engine takes for never: its
// own zero stands for the default.
func orNever[N int | time.Duration](n N) N {
	if n == 0 {
		return -1
	}
	return n
}

// piOptions adds the settings of pi-server to the options of a server.
func piOptions(c config.Pi, o pi.Options) pi.Options {
	o.PromptTimeout, o.DropTasks = c.PromptTimeout, !c.KeepTasks
	o.MaxMessageBytes, o.MaxSessions, o.AllSessions, o.MaxConnections = c.MessageBytes, c.Sessions, c.SessionsAll, c.Connections
	o.MaxPending, o.MaxInFlight, o.InFlightBytes, o.SessionLifetime = c.Pending, c.InFlight, c.InFlightBytes, orNever(c.SessionLifetime)
	o.CommandTimeout, o.DependencyTimeout = c.CommandTimeout, c.DependencyTimeout
	o.MaxOutcomes, o.OutcomeBytes, o.KeyTTL = c.Outcomes, c.OutcomeBytes, c.KeyTTL
	o.Retries, o.RetryDelay, o.Bash = orNever(c.Retries), c.RetryDelay, c.Bash
	o.CompactAt = orNever(c.CompactAt)
	o.SessionDir, o.SessionRoots, o.ExportDirs = c.SessionDirectory(), c.SessionRootDirectories(), c.ExportDirectories()
	o.MaxFileBytes = c.SessionBytes
	r, b := c.Rates, c.Breakers
	o.Rates = pi.Rates{All: orNever(r.All), Client: orNever(r.Client), Session: orNever(r.Session), Server: orNever(r.Server), Answers: orNever(r.Answers)}
	breaker := func(failures int, window time.Duration) pi.Breaker {
		return pi.Breaker{Failures: orNever(failures), Window: window, Open: b.Open, Trials: b.Trials}
	}
	o.Breakers = pi.Breakers{
		Agent:       breaker(b.AgentFailures, b.AgentWindow),
		BashSession: breaker(b.SessionFailures, b.BashWindow), BashAll: breaker(b.BashFailures, b.BashWindow),
	}
	return o
}
