package config

import "time"

// Pi are the settings of the pi-server dialect.
type Pi struct {
	PromptTimeout, SessionLifetime    time.Duration
	MessageBytes, Sessions            int
	Connections                       int
	Snapshots, Lifecycle              string
	KeepTasks, Bash                   bool
	Retries, CompactAt, AgentFailures int
	SessionDir                        string
	SessionRoots, ExportDirs          []string
	Rates                             PiRates
}

func (p *Pi) settings(t *table) {
	add(t, "prompt_timeout", &p.PromptTimeout, 4*time.Hour, "Deadline of a prompt from its admission. How long people are waited for does not count. A steer or follow_up that becomes its own turn gets the same time again.").atMost(maxWait)
	add(t, "message_bytes", &p.MessageBytes, 10<<20, "Maximum size of a command.").bytes().atLeast(1024)
	add(t, "sessions", &p.Sessions, 100, "Maximum number of live sessions per client: a principal, or a connection on an open hub. Beyond it, the session that has been idle longest without a subscriber is parked; its conversation stays in its file.").atLeast(1)
	add(t, "session_lifetime", &p.SessionLifetime, 24*time.Hour, "Lifetime of a session from its creation; a busy session ends once it is idle. 0s keeps sessions forever.").atLeast(0)
	add(t, "connections", &p.Connections, 1000, "Maximum number of WebSocket clients.").atLeast(1)
	add(t, "snapshots", &p.Snapshots, "all", "Whether updates of a growing message repeat all of it or none, unless a client chooses.").oneOf("all", "none")
	add(t, "lifecycle", &p.Lifecycle, "all", "Whose command lifecycle events a client gets by default: everybody's (all), those for sessions it is subscribed to (session), or only its own. Nobody gets those of another principal.").oneOf("all", "session", "own")
	add(t, "retries", &p.Retries, 3, "How many times a prompt that failed with a transient error is retried.").atLeast(0)
	add(t, "compact_at", &p.CompactAt, 87, "Percentage of the agent's context window at which a conversation is compacted. 0 disables compaction.").atLeast(0).atMost(100)
	add(t, "keep_tasks", &p.KeepTasks, true, "Keep a prompt running when the client that sent it disconnects.")
	add(t, "session_dir", &p.SessionDir, "pi-sessions", "Directory that conversations are written to, in pi's file format. A relative one is below data_dir; without data_dir, or if it is empty, they are kept in memory only. ~/.pi/agent/sessions is that of pi itself.")
	add(t, "session_roots", &p.SessionRoots, []string{"~/.pi/agent/sessions", ".pi/sessions"}, "Directories below which session files are listed and loaded, in addition to session_dir. A relative one is looked for in the working directory and each directory above it, up to the home directory.")
	add(t, "export_dirs", &p.ExportDirs, []string{"."}, "Directories below which export_html may write, in addition to session_dir. Relative ones are below the working directory; the root of the file system is never allowed.")
	add(t, "bash", &p.Bash, false, "Let every pi client run programs with the command bash, on this machine, as the hub's user and for up to the deadline of a prompt.")
	p.Rates.settings(t.group("rates", "Maximum number of commands started per minute. A client is a principal, or a connection on an open hub."))
	breakers := t.group("breakers", "Circuit breakers of agents.")
	add(breakers, "agent_failures", &p.AgentFailures, 5, "Number of failures within a minute that opens an agent's circuit. 0 disables it.").atLeast(0)
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
