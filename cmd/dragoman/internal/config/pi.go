package config

import "time"

// Pi are the settings of the pi-server dialect.
type Pi struct {
	PromptTimeout, SessionLifetime time.Duration
	MessageBytes                   int
	Sessions, SessionsAll          int
	Connections, Pending           int
	Snapshots, Lifecycle           string
	KeepTasks                      bool
	Retries                        int
	RetryDelay                     time.Duration
	CompactAt                      int
	// Commands.
	CommandTimeout, DependencyTimeout time.Duration
	InFlight, InFlightBytes           int
	Outcomes, OutcomeBytes            int
	KeyTTL                            time.Duration
	JournalBytes                      int64
	// Session files.
	SessionDir               string
	SessionBytes             int64
	SessionRoots, ExportDirs []string
	// Governance.
	Bash     bool
	Rates    PiRates
	Breakers PiBreakers
}

func (p *Pi) settings(t *table) {
	add(t, "prompt_timeout", &p.PromptTimeout, 4*time.Hour, "Deadline of a prompt from its admission. How long people are waited for does not count. A steer or follow_up that becomes its own turn gets the same time again.").noLonger(maxWait)
	add(t, "message_bytes", &p.MessageBytes, 10<<20, "Maximum size of a command.").bytes().atLeast(1024)
	add(t, "sessions", &p.Sessions, 100, "Maximum number of live sessions per client: a principal, or a connection on an open hub. Beyond it, the session that has been idle longest without a subscriber is parked; its conversation stays in its file.").atLeast(1)
	add(t, "sessions_all", &p.SessionsAll, 10_000, "Maximum number of live sessions of all clients. Beyond it, idle sessions are parked in the same way.").atLeast(1)
	add(t, "session_lifetime", &p.SessionLifetime, 24*time.Hour, "Lifetime of a session from its creation; a busy session ends once it is idle. 0s keeps sessions forever.").noShorter(0)
	add(t, "connections", &p.Connections, 1000, "Maximum number of WebSocket clients.").atLeast(1)
	add(t, "pending", &p.Pending, 100, "Maximum number of unanswered commands per client.").atLeast(1)
	add(t, "snapshots", &p.Snapshots, "all", "Whether updates of a growing message repeat all of it or none, unless a client chooses.").oneOf("all", "none")
	add(t, "lifecycle", &p.Lifecycle, "all", "Whose command lifecycle events a client gets by default: everybody's (all), those for sessions it is subscribed to (session), or only its own. Nobody gets those of another principal.").oneOf("all", "session", "own")
	add(t, "retries", &p.Retries, 3, "How many times a prompt that failed with a transient error is retried.").atLeast(0)
	add(t, "retry_delay", &p.RetryDelay, 2*time.Second, "Delay before the first retry; it doubles with each further one.")
	add(t, "compact_at", &p.CompactAt, 87, "Percentage of the agent's context window at which a conversation is compacted. 0 disables compaction.").atLeast(0).atMost(100)
	add(t, "keep_tasks", &p.KeepTasks, true, "Keep a prompt running when the client that sent it disconnects.")
	add(t, "command_timeout", &p.CommandTimeout, 30*time.Second, "Maximum duration of a command that only reads or stops something.").noLonger(maxWait)
	add(t, "dependency_timeout", &p.DependencyTimeout, 30*time.Second, "How long a command waits for each command that it depends on.").noLonger(maxWait)
	add(t, "in_flight", &p.InFlight, 10_000, "Maximum number of commands of all clients in flight.").atLeast(1)
	add(t, "in_flight_bytes", &p.InFlightBytes, 256<<20, "Maximum size of all queued commands. Small ones are admitted beyond it, up to in_flight.").bytes().atLeast(1024)
	add(t, "outcomes", &p.Outcomes, 2000, "Maximum number of outcomes replayed by id, per principal, or per connection where nobody has to authenticate.").atLeast(1)
	add(t, "outcome_bytes", &p.OutcomeBytes, 64<<20, "Maximum size of the outcomes kept for replay.").bytes().atLeast(1024)
	add(t, "key_ttl", &p.KeyTTL, 600*time.Second, "How long the outcome of a command is replayed for its idempotencyKey.").noLonger(maxWait)
	add(t, "journal_bytes", &p.JournalBytes, 64<<20, "Maximum size of the commands in the journal; they are kept for no longer than journal.age.").bytes().atLeast(1 << 20)
	add(t, "session_bytes", &p.SessionBytes, 64<<20, "Maximum size of a session file that is loaded. Larger ones are only listed.").bytes().atLeast(1 << 20)
	add(t, "session_dir", &p.SessionDir, "pi-sessions", "Directory that conversations are written to, in pi's file format. A relative one is below data_dir; without data_dir, or if it is empty, they are kept in memory only. ~/.pi/agent/sessions is that of pi itself.")
	add(t, "session_roots", &p.SessionRoots, []string{"~/.pi/agent/sessions", ".pi/sessions"}, "Directories below which session files are listed and loaded, in addition to session_dir. A relative one is looked for in the working directory and each directory above it, up to the home directory.")
	add(t, "export_dirs", &p.ExportDirs, []string{"."}, "Directories below which export_html may write, in addition to session_dir. Relative ones are below the working directory; the root of the file system is never allowed.")
	add(t, "bash", &p.Bash, false, "Let every pi client run programs with the command bash, on this machine, as the hub's user and for up to the deadline of a prompt.")
	p.Rates.settings(t.group("rates", "Maximum number of commands started per minute. A client is a principal, or a connection on an open hub."))
	p.Breakers.settings(t.group("breakers", "Circuit breakers of agents and bash."))
}

// PiRates limit the commands per minute: see command.Rates of adapters/pi.
type PiRates struct {
	All, Client, Session, Server, Answers int
}

func (r *PiRates) settings(t *table) {
	add(t, "all", &r.All, 0, "Commands per minute of all clients together. 0 sets no limit.").atLeast(0)
	add(t, "client", &r.Client, 1000, "Commands per minute of one client. 0 sets no limit.").atLeast(0)
	add(t, "session", &r.Session, 100, "Commands per minute of one client for one session; switching to it and deleting it are counted apart. 0 sets no limit.").atLeast(0)
	add(t, "server", &r.Server, 100, "Commands per minute of one client that concern no session. 0 sets no limit.").atLeast(0)
	add(t, "answers", &r.Answers, 60, "Answers per minute of one client to the dialogs of one session. 0 sets no limit.").atLeast(0)
}

// PiBreakers are the circuit breakers of agents and bash: see command.Breakers of adapters/pi.
type PiBreakers struct {
	AgentFailures int
	AgentWindow   time.Duration
	// SessionFailures counts bash commands of one session, BashFailures those of all.
	SessionFailures, BashFailures int
	BashWindow, Open              time.Duration
	Trials                        int
}

func (b *PiBreakers) settings(t *table) {
	add(t, "agent_failures", &b.AgentFailures, 5, "Number of failures within agent_window that opens an agent's circuit. 0 disables it.").atLeast(0)
	add(t, "agent_window", &b.AgentWindow, 60*time.Second, "How long a failure of an agent counts.").noLonger(maxWait)
	add(t, "session_failures", &b.SessionFailures, 10, "Number of bash failures within bash_window that opens the circuit of a session. 0 disables it.").atLeast(0)
	add(t, "bash_failures", &b.BashFailures, 50, "Number of bash failures of all sessions within bash_window that opens the circuit of bash. 0 disables it.").atLeast(0)
	add(t, "bash_window", &b.BashWindow, 120*time.Second, "How long a bash failure counts.").noLonger(maxWait)
	add(t, "open", &b.Open, 30*time.Second, "How long an open circuit refuses calls.").noLonger(maxWait)
	add(t, "trials", &b.Trials, 2, "Number of consecutive successes that closes a circuit again.").atLeast(1)
}
