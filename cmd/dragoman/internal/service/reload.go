package service

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/credentials"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// reloadable are the settings that Reload applies. The files that they name are read again.
var reloadable = []string{"agents", "packs", "auth.jwt", "auth.registration", "auth.rules", "auth.ssh_keys", "auth.tokens", "notify.webhooks", "parallax.heartbeat_interval", "parallax.secrets", "redact.patterns", "tls.cert", "tls.client_ca", "tls.key"}

// Reload applies the changed settings that are reloadable and notifies the agents concerned.
// The others are logged. After an error nothing has changed. Only one goroutine may call it.
func (s *Service) Reload(c config.Config) error {
	if c.Authenticates() != s.config.Authenticates() {
		return errors.New("auth.tokens, auth.ssh_keys, auth.registration, auth.jwt and tls.client_ca: authentication cannot begin or end while the hub runs: restart the hub")
	}
	if (c.TLS.Cert == "") != (s.config.TLS.Cert == "") {
		return errors.New("tls.cert: TLS cannot begin or end while the hub runs: restart the hub")
	}
	certificates, err := readTLS(c)
	if err != nil {
		return fmt.Errorf("%w; the previous certificate stays in use", err)
	}
	signing, err := credentials.ReadSigningSecrets(c.Parallax.Secrets)
	if err != nil {
		return err
	}
	redactor, err := redactorOf(c, s.covenSecrets, signing)
	if err != nil {
		return err
	}
	if err := s.authorize(c, certificates); err != nil {
		return err
	}
	s.useTLS(certificates)
	s.parallax.signing.Store(&signing)
	s.redactor.Store(redactor)
	const reason = "the configuration was reloaded"
	before, now := s.loaded.Values(), c.Values()
	if c.Parallax.HeartbeatInterval != s.loaded.Parallax.HeartbeatInterval {
		s.hub.SetDialectSettings(parallax.Dialect, hub.AgentSettings{Heartbeat: c.Parallax.HeartbeatInterval}, reason)
	}
	s.notifier.SetWebhooks(webhooksOf(c))
	s.supervisor.Apply(c.Agents, c.Packs)
	s.loaded = c
	var later []string
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if before[key] != now[key] && !slices.Contains(reloadable, key) {
			later = append(later, key)
		}
	}
	if len(later) > 0 {
		s.log.Warn("some changed settings take effect at the next start", "settings", later)
	}
	s.log.Info(reason)
	return nil
}
