package config

import (
	"time"
)

// Config has the settings of a hub. The settings methods next to the fields declare the name,
// the default, the description and the limits of each. A flag takes precedence over the
// environment, the environment over the file, and the file over the default.
type Config struct {
	// File is the settings file that was read, or was to be; "" for none.
	File string
	// Places are the origins, by key, of the settings that are set.
	Places map[string]Origin

	GRPCAddr, HTTPAddr, PiAddr, PiSocket string
	DataDir, ReadyFile, HubName          string
	Stdio, Insecure                      bool
	LogLevel, LogFormat                  string
	Hosts, Origins                       []string
	StopTimeout                          time.Duration
	Budgets                              Budgets
	Agents                               Agents
	Packs                                Packs

	Cluster   Cluster
	Journal   Journal
	Usage     Usage
	TLS       TLS
	Auth      Auth
	Audit     Audit
	Redact    Redact
	Traces    Traces
	Notify    Notify
	Limits    Limits
	Quotas    Quotas
	Frames    Frames
	GRPC      GRPC
	HTTP      HTTP
	WebSocket WebSocket
	Coven     Coven
	Parallax  Parallax
	ACP       ACP
	Native    Native
	Editor    Editor
	Pi        Pi
	REST      REST
	MCP       MCP
	A2A       A2A
}

// settings declares every setting once, in the order of the documentation.
func (c *Config) settings() *table {
	t := &table{}
	const freePort = " Port 0 picks a free one, an empty text disables the listener."
	add(t, "grpc_addr", &c.GRPCAddr, "127.0.0.1:50051", "gRPC listen address, host:port, for Coven and the gateway of Parallax."+freePort).flag("grpc-addr", "address")
	add(t, "http_addr", &c.HTTPAddr, "127.0.0.1:8080", "HTTP listen address, host:port, for Parallax, ACP, the native dialect, pi-server, REST, MCP and A2A."+freePort).flag("http-addr", "address")
	add(t, "pi_addr", &c.PiAddr, "127.0.0.1:3141", "Listen address of pi-server, host:port."+freePort).flag("pi-addr", "address")
	add(t, "pi_socket", &c.PiSocket, "", "Path of a Unix socket for pi-server, one JSON object per line. Empty for none.").flag("pi-socket", "path").path()
	add(t, "data_dir", &c.DataDir, "", "Directory of the journal. If empty, tasks are kept in memory only.").flag("data-dir", "directory").path()
	add(t, "hub_name", &c.HubName, "", "Name of this hub in its cluster, which it keeps over restarts. It also names its part of the journal, in place of journal.name.").flag("hub-name", "name")
	add(t, "stdio", &c.Stdio, false, "Also speak pi-server on stdin and stdout.").flag("stdio", "")
	add(t, "insecure", &c.Insecure, false, "Allow listening beyond this machine without TLS or authentication.").flag("insecure", "")
	add(t, "log_level", &c.LogLevel, "info", "Minimum level that is logged: debug, info, warn or error.").flag("log-level", "level").oneOf("debug", "info", "warn", "error")
	add(t, "log_format", &c.LogFormat, "auto", "Log format: human, json, or auto (human on a terminal, json elsewhere).").flag("log-format", "format").oneOf("auto", "human", "json")
	add(t, "ready_file", &c.ReadyFile, "", "File that the bound addresses are written to once all listeners are ready.").flag("ready-file", "file").path()
	add(t, "hosts", &c.Hosts, []string{}, "Host names accepted in HTTP requests, in addition to the loopback names. Without port; each name on its own, since there are no wildcards.").each(cleanHost, `^[^/*?\s]+$`)
	add(t, "origins", &c.Origins, []string{}, "Browser origins that may use the HTTP interfaces, such as https://console.example.com: with the scheme, and the port unless it is that of the scheme. There are no wildcards.").each(cleanOrigin, `^[^/*?\s]+://[^/*?\s]+/?$`)
	add(t, "stop_timeout", &c.StopTimeout, 30*time.Second, "Time that running tasks get to finish when the hub stops.").atLeast(0)

	c.Cluster.settings(t.group("cluster", "Several hubs that work as one."))
	c.Journal.settings(t.group("journal", "How long tasks are kept, and where."))
	c.Usage.settings(t.group("usage", "What tokens cost, and how long token usage is kept."))
	add(t, "budgets", &c.Budgets, nil, "Limits of tokens or of money per agent, requester or thread, each per day or in total.")
	add(t, "agents", &c.Agents, nil, "Agents that the hub runs as child processes, or connects to.")
	add(t, "packs", &c.Packs, nil, "MCP servers that the hub runs or connects to, and whose tools it offers.")
	c.TLS.settings(t.group("tls", "Encryption."))
	c.Auth.settings(t.group("auth", "Authentication."))
	c.Audit.settings(t.group("audit", "How long the audit is kept."))
	c.Redact.settings(t.group("redact", "What is not stored."))
	c.Traces.settings(t.group("traces", "Traces, in OpenTelemetry's protocol over HTTP."))
	c.Notify.settings(t.group("notify", "Who is told elsewhere."))
	c.Limits.settings(t.group("limits", "Limits of the engine."))
	c.Quotas.settings(t.group("quotas", "What each principal may have of the hub. 0 is no limit."))
	c.Frames.settings(t.group("frames", "The raw frames of tasks."))
	c.GRPC.settings(t.group("grpc", "gRPC connections."))
	c.HTTP.settings(t.group("http", "HTTP connections."))
	c.WebSocket.settings(t.group("websocket", "WebSocket keepalive and write timeout."))
	c.Coven.settings(t.group("coven", "The Coven dialect."))
	c.Parallax.settings(t.group("parallax", "The Parallax dialect."))
	c.ACP.settings(t.group("acp", "The ACP dialect."))
	c.Native.settings(t.group("native", "The native dialect."))
	c.Editor.settings(t.group("editor", "Editors, for which the hub is an agent."))
	c.Pi.settings(t.group("pi", "The pi-server dialect."))
	c.REST.settings(t.group("rest", "The REST interface of the hub."))
	c.MCP.settings(t.group("mcp", "The MCP endpoint, at /mcp of the HTTP address."))
	c.A2A.settings(t.group("a2a", "The A2A endpoint, at /a2a of the HTTP address."))
	return t
}

// GRPC bounds the connections of gRPC.
type GRPC struct {
	Connections               int
	PingInterval, PingTimeout time.Duration // of the hub's own pings
}

func (g *GRPC) settings(t *table) {
	add(t, "connections", &g.Connections, 4096, "Maximum number of connections. Further ones are closed.").atLeast(1)
	add(t, "ping_interval", &g.PingInterval, 15*time.Second, "Silence after which the hub pings a connection.").atLeast(int64(time.Second))
	add(t, "ping_timeout", &g.PingTimeout, 5*time.Second, "Maximum time to answer a ping before the connection is closed.").atLeast(int64(time.Second))
}

// HTTP bounds the connections of each HTTP listener.
type HTTP struct {
	Connections int
}

func (h *HTTP) settings(t *table) {
	add(t, "connections", &h.Connections, 4096, "Maximum number of connections per listener (HTTP and pi-server), WebSockets included. Further ones get 503 and are closed.").atLeast(1)
}

// WebSocket has the timeouts of every WebSocket.
type WebSocket struct {
	PingInterval, PingTimeout, WriteTimeout time.Duration
}

func (w *WebSocket) settings(t *table) {
	add(t, "ping_interval", &w.PingInterval, 30*time.Second, "Silence after which the hub pings a peer.").atLeast(int64(time.Second))
	add(t, "ping_timeout", &w.PingTimeout, 10*time.Second, "Maximum time to answer a ping before the connection is closed.").atLeast(int64(time.Second))
	add(t, "write_timeout", &w.WriteTimeout, 30*time.Second, "Time without progress after which a peer that does not read is disconnected as too slow.").atLeast(int64(time.Second))
}
