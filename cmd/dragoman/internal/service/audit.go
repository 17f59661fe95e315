package service

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/credentials"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/audit"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/redact"
)

// auditRecords is the log of the audit.
const auditRecords = "audit"

// electionTime is how long the servers of a cluster refuse to write while they elect a leader, which
// may be when a hub stops: others were upgraded just before.
const electionTime = 9 * time.Second

// auditPause is the time between two tries to read an audit while the servers elect a leader.
const auditPause = 250 * time.Millisecond

// openAudit opens the audit in the journal, or in memory where nothing is stored.
func (s *Service) openAudit(ctx context.Context, hub string) error {
	c := s.config.Audit
	store := s.records(auditRecords)
	if store == nil {
		store = audit.NewMemory(journal.Retention{Age: c.Age, Bytes: c.Bytes})
	}
	var patience time.Duration
	var unavailable func() bool
	again := func(error) bool { return false }
	if j, is := s.journal.(*nats.Journal); is && s.config.Clustered() {
		patience, unavailable, again = electionTime, j.CannotStore, j.IsTemporary
	}
	o := audit.Options{Store: store, Hub: hub, Patience: patience, Unavailable: unavailable, Log: s.log, Redact: func(text string) string { return s.redactor.Load().Text(text) }, Count: func(name string) {
		if h := s.counted.Load(); h != nil {
			h.Count(name)
		}
	}}
	for {
		var err error
		// It reads all that is kept, so each try may take its time.
		if s.audit, err = audit.Open(ctx, o); err == nil || !again(err) || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(auditPause):
		case <-ctx.Done():
			return err
		}
	}
}

// redactorOf returns what takes the secrets of the settings, what their patterns match and the
// tokens that the program makes out of what is stored and logged.
func redactorOf(c config.Config, coven credentials.Secrets, signing map[core.AgentID][]byte) (*redact.Redactor, error) {
	var known []string
	for _, of := range coven {
		for _, secret := range of {
			known = append(known, secret)
		}
	}
	for _, secret := range signing {
		known = append(known, string(secret))
	}
	addFile := func(path string) { // whoever needs it reports that it is missing
		if text, err := os.ReadFile(path); path != "" && err == nil {
			known = append(known, strings.TrimSpace(string(text)))
		}
	}
	for _, one := range c.Auth.JWT {
		addFile(one.SecretFile)
	}
	add := func(p config.Process, r config.Remote) {
		addFile(r.TokenFile)
		for _, variable := range p.Env {
			name, value, given := strings.Cut(variable, "=")
			if !given {
				value = os.Getenv(name)
			}
			if isSecretName(name) {
				known = append(known, value)
			}
		}
	}
	for _, a := range c.Agents {
		add(a.Process, a.Remote)
	}
	for _, p := range c.Packs {
		add(p.Process, p.Remote)
	}
	for _, w := range c.Notify.Webhooks {
		known = append(known, w.URL, w.Secret)
	}
	r, err := redact.New(append([]string{redact.OwnTokens}, c.Redact.Patterns...), known)
	if err != nil {
		return nil, errors.New(cmp.Or(c.At("redact.patterns").Where(), "redact.patterns") + ": " + err.Error())
	}
	return r, nil
}

// isSecretName reports whether the name of a variable says that its value is a secret: others
// have paths, modes and addresses, which must stay in the journal.
func isSecretName(name string) bool {
	name = strings.ToUpper(name)
	for _, part := range []string{"KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// came audits that somebody came in, or was refused.
func (s *Service) came(p core.Principal, by, from string, err error) {
	if s.audit != nil {
		s.audit.Connected(p, by, from, err)
	}
}
