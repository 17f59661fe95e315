package config

import "time"

// Pi are the settings of the pi-server dialect.
type Pi struct {
	PromptTimeout   time.Duration `koanf:"prompt_timeout"`
	MessageBytes    int           `koanf:"message_bytes"`
	Sessions        int           `koanf:"sessions"`
	SessionsAll     int           `koanf:"sessions_all"`
	SessionLifetime time.Duration `koanf:"session_lifetime"`
	Connections     int           `koanf:"connections"`
	Pending         int           `koanf:"pending"`
	Snapshots       string        `koanf:"snapshots"`
	Lifecycle       string        `koanf:"lifecycle"`
	KeepTasks       bool          `koanf:"keep_tasks"`
	Retries         int           `koanf:"retries"`
	RetryDelay      time.Duration `koanf:"retry_delay"`
	CompactAt       int           `koanf:"compact_at"`
	// Of the engine.
	CommandTimeout    time.Duration `koanf:"command_timeout"`
	DependencyTimeout time.Duration `koanf:"dependency_timeout"`
	InFlight          int           `koanf:"in_flight"`
	InFlightBytes     int           `koanf:"in_flight_bytes"`
	Outcomes          int           `koanf:"outcomes"`
	OutcomeBytes      int           `koanf:"outcome_bytes"`
	KeyTTL            time.Duration `koanf:"key_ttl"`
	JournalBytes      int64         `koanf:"journal_bytes"`
	// Of what is on the disk.
	SessionDir   string   `koanf:"session_dir"`
	SessionBytes int64    `koanf:"session_bytes"`
	SessionRoots []string `koanf:"session_roots"`
	ExportDirs   []string `koanf:"export_dirs"`
	// Of its governance.
	Bash     bool       `koanf:"bash"`
	Rates    PiRates    `koanf:"rates"`
	Breakers PiBreakers `koanf:"breakers"`
}

// PiRates are how many commands may begin within a minute: see command.Rates of adapters/pi.
type PiRates struct {
	All     int `koanf:"all"`
	Client  int `koanf:"client"`
	Session int `koanf:"session"`
	Server  int `koanf:"server"`
	Answers int `koanf:"answers"`
}

// PiBreakers say when agents and bash are not asked for a while: see
// command.Breakers of adapters/pi.
type PiBreakers struct {
	AgentFailures int           `koanf:"agent_failures"`
	AgentWindow   time.Duration `koanf:"agent_window"`
	// SessionFailures are those of the bash commands of one session, BashFailures
	// of all.
	SessionFailures int           `koanf:"session_failures"`
	BashFailures    int           `koanf:"bash_failures"`
	BashWindow      time.Duration `koanf:"bash_window"`
	Open            time.Duration `koanf:"open"`
	Trials          int           `koanf:"trials"`
}

func piDefaults() map[string]any {
	return map[string]any{
		"pi.prompt_timeout": "300s", "pi.message_bytes": 10 << 20, "pi.sessions": 100, "pi.sessions_all": 10_000, "pi.session_lifetime": "24h", "pi.connections": 1000,
		"pi.pending": 100, "pi.in_flight": 10_000, "pi.in_flight_bytes": 256 << 20, "pi.snapshots": "all", "pi.lifecycle": "all", "pi.keep_tasks": true, "pi.bash": false, "pi.retries": 3, "pi.retry_delay": "2s", "pi.compact_at": 87,
		"pi.command_timeout": "30s", "pi.dependency_timeout": "30s", "pi.outcomes": 2000, "pi.outcome_bytes": 64 << 20,
		"pi.key_ttl": "600s", "pi.journal_bytes": 64 << 20, "pi.session_bytes": 64 << 20,
		"pi.session_dir": "~/.pi/agent/sessions", "pi.session_roots": []string{"~/.pi/agent/sessions", ".pi/sessions"}, "pi.export_dirs": []string{"."},
		"pi.rates.all": 0, "pi.rates.client": 1000, "pi.rates.session": 100, "pi.rates.server": 100, "pi.rates.answers": 60,
		"pi.breakers.agent_failures": 5, "pi.breakers.agent_window": "60s", "pi.breakers.session_failures": 10, "pi.breakers.bash_failures": 50,
		"pi.breakers.bash_window": "120s", "pi.breakers.open": "30s", "pi.breakers.trials": 2,
	}
}
