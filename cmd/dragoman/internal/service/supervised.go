package service

import (
	"net"
	"net/http"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/adapters/metrics"
	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/supervisor"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// recordKeepers are the dialects whose supervised agents keep records of their sessions.
var recordKeepers = []string{config.SpeaksEditor, config.SpeaksPiRPC, config.SpeaksA2A}

// recordLimit bounds those records, per dialect, and those of principals.
const recordLimit = 16 << 20

// commandBytes bounds the commands of pi-server in the journal.
const commandBytes = 64 << 20

// forever is how long records are kept that do not expire.
const forever = 100 * 365 * 24 * time.Hour

// recordLogs returns the limits of the logs of records that the journal has: those of pi-server,
// and where there are agents in the settings those of their dialects.
func recordLogs(c config.Config) map[string]journal.Retention {
	logs := map[string]journal.Retention{auditRecords: {Age: c.Audit.Age, Bytes: c.Audit.Bytes}, pi.Name: {Age: c.Journal.Age, Bytes: commandBytes}}
	if c.Auth.Required() { // keys that registered before remain, whatever becomes of others
		logs[principalRecords] = journal.Retention{Age: forever, Bytes: recordLimit}
	}
	if at, _ := collectorOf(c.Traces); at != nil {
		logs[traceRecords] = journal.Retention{Age: forever, Bytes: traceRecordBytes}
	}
	if len(c.Agents) > 0 {
		for _, dialect := range recordKeepers {
			logs[dialect] = journal.Retention{Age: c.Journal.Age, Bytes: recordLimit}
		}
	}
	return logs
}

// GuardCommand is the hidden command that ends the children of this program if it is killed:
// see [supervisor.Guard].
const GuardCommand = "guard"

// newSupervisor returns what runs the agents and packs of the settings.
func (s *Service) newSupervisor() *supervisor.Supervisor {
	launcher := &supervisor.Launcher{Log: s.log}
	if self := SelfCommand(GuardCommand); self != nil {
		launcher.Guard = supervisor.NewGuard(self...)
	}
	return supervisor.New(supervisor.Options{
		Hub: s.hub, Launcher: launcher, Version: Version, Log: s.log, HTTP: remoteClient(), Records: s.records, Tools: s.toolsFor, DataDir: s.config.DataDir, Frames: s.frames,
		Changed: s.notifier.ChildChanged,
	})
}

// records returns the log of the supervised agents of a dialect; nil where nothing is stored.
func (s *Service) records(dialect string) core.RecordLog {
	if j, ok := s.journal.(*nats.Journal); ok {
		if l := j.Log(dialect); l != nil {
			return l
		}
	}
	return nil
}

// toolsFor gives an agent in this process access to the tools of the hub. The token acts as its
// session.
func (s *Service) toolsFor(session *hub.Session) (url, token string, revoke func()) {
	if s.bound.HTTP == "" || s.mcp.server == nil {
		return "", "", func() {}
	}
	token, revoke = s.mcp.server.Issue(session)
	if s.tls.on() && s.config.MCP.Endpoint != "" {
		return s.config.MCP.Endpoint, token, revoke // few certificates name 127.0.0.1
	}
	here := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} // its child is on this machine
	return endpoint(s.tls.on(), s.bound.HTTP, here, here), token, revoke
}

// knows reports whether the credential of a principal is still valid.
func (s *Service) knows(p core.Principal) bool {
	return p.Proof == supervisor.Proof || s.auth.Knows(p)
}

// remoteClient returns the client for agents and packs at an address. Answers may stream for as
// long as they like.
func remoteClient() *http.Client {
	const connect, headers = 10 * time.Second, 60 * time.Second
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSHandshakeTimeout, t.ResponseHeaderTimeout = connect, headers
	return &http.Client{Transport: t}
}

// Packs returns the packs of the settings, by name, with the state of each.
func (s *Service) Packs() []hub.PackStatus {
	var all []hub.PackStatus
	for _, p := range s.supervisor.Packs() {
		all = append(all, hub.PackStatus{ID: p.Name, Dialect: mcp.Name, Child: &p.Child})
	}
	return all
}

// children returns the states of the agents and packs of the settings, for the metrics.
func (s *Service) children() (all []metrics.Child) {
	for _, one := range s.supervisor.States() {
		all = append(all, metrics.Child{Kind: one.Kind, Name: one.Name, Child: one.Child})
	}
	return all
}
