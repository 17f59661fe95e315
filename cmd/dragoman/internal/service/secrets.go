package service

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/credentials"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/supervisor"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/transports/stdio"
)

// CheckFiles checks the paths that settings name, and reads the files, as a start does. It also
// finds what the agents and packs of the settings lack. The error has a line for each.
func CheckFiles(c config.Config) error {
	all := []error{ReadFiles(c), checkPaths(c), checkCluster(c)}
	for _, f := range findings(c) {
		if !f.Warning {
			all = append(all, errors.New(f.Text))
		}
	}
	return errors.Join(all...)
}

// ReadFiles reads the files that settings name, without using them: credentials, rules, secrets and
// certificates. The error has a line for each mistake.
func ReadFiles(c config.Config) error {
	settings, auth := credentials.ReadAuth(c.Auth)
	if auth == nil {
		auth = credentials.CheckNames(c, settings)
	}
	var rules error
	if c.Auth.Rules != "" {
		_, rules = credentials.ReadRules(c.Auth.Rules)
	}
	_, secrets := credentials.ReadSecrets(c.Coven.Secrets)
	_, signing := credentials.ReadSigningSecrets(c.Parallax.Secrets)
	_, redaction := redactorOf(c, nil, nil)
	_, tls := readTLS(c)
	return errors.Join(tls, auth, rules, secrets, signing, redaction)
}

// Warnings returns what is probably wrong with the agents, the packs and the files of the
// settings, although a hub starts with it.
func Warnings(c config.Config) []string {
	all := slices.Concat(exposedFiles(c), ruleWarnings(c), notifyWarnings(c))
	for _, f := range findings(c) {
		if f.Warning {
			all = append(all, f.Text)
		}
	}
	return all
}

// exposedFiles returns a warning for each file with secrets that others may read, and for each
// that says who may do what and that others may write to.
func exposedFiles(c config.Config) (all []string) {
	files := []struct{ key, path string }{
		{"auth.tokens", c.Auth.Tokens}, {"coven.secrets", c.Coven.Secrets}, {"parallax.secrets", c.Parallax.Secrets}, {"a2a.signing_key", c.A2A.SigningKey}, {"tls.key", c.TLS.Key}, {"cluster.secret_file", c.Cluster.SecretFile}, {"cluster.tls.key", c.Cluster.TLS.Key},
	}
	if slices.ContainsFunc(c.Notify.Webhooks, func(w config.Webhook) bool { return w.Secret != "" }) {
		files = append(files, struct{ key, path string }{"notify.webhooks", c.File})
	}
	for i, one := range c.Auth.JWT {
		files = append(files, struct{ key, path string }{fmt.Sprintf("auth.jwt[%d].secret_file", i), one.SecretFile})
	}
	for _, secret := range files {
		if text := supervisor.Exposed(secret.path); text != "" {
			all = append(all, fmt.Sprintf("%s: %s", c.At(secret.key), text))
		}
	}
	for _, public := range []struct{ key, path string }{{"auth.rules", c.Auth.Rules}, {"auth.ssh_keys", c.Auth.SSHKeys}} {
		if text := writable(public.path); text != "" {
			all = append(all, fmt.Sprintf("%s: %s", c.At(public.key), text))
		}
	}
	return all
}

// writable says that others may change a file that says who may do what, and what to do; "" if
// they may not, or there is none, and on Windows, as [supervisor.Exposed] does.
func writable(path string) string {
	mode, may := supervisor.Allows(path, 0o022)
	if !may {
		return ""
	}
	return fmt.Sprintf("other users may write to %s (mode %04o): run chmod go-w on it", path, mode)
}

// findings returns what is wrong with the agents and packs of the settings, with the place of
// each.
func findings(c config.Config) (all []supervisor.Finding) {
	add := func(list string, i int, found []supervisor.Finding) {
		for _, f := range found {
			f.Text = fmt.Sprintf("%s: %s", c.At(fmt.Sprintf("%s[%d].%s", list, i, f.Member)), f.Text)
			all = append(all, f)
		}
	}
	for i, a := range c.Agents {
		add("agents", i, supervisor.CheckAgent(a))
	}
	for i, p := range c.Packs {
		add("packs", i, supervisor.Check(p.Process, p.Remote))
	}
	return all
}

// checkPaths returns an error for paths of the settings that cannot be used.
func checkPaths(c config.Config) error {
	var errs []error
	if info, err := os.Stat(c.DataDir); err == nil && !info.IsDir() {
		errs = append(errs, fmt.Errorf("%s %s: it is a file; name a directory that you may write into", c.At("data_dir"), c.DataDir))
	}
	if err := stdio.CanListen(); err != nil && c.PiSocket != "" {
		errs = append(errs, fmt.Errorf("%s %s: %w", c.At("pi_socket"), c.PiSocket, err))
	} else if info, err := os.Lstat(c.PiSocket); err == nil && info.Mode()&fs.ModeSocket == 0 {
		errs = append(errs, fmt.Errorf("%s %s: a file that is not a socket is there: remove it, or name another path", c.At("pi_socket"), c.PiSocket))
	}
	if path := c.ReadyFile; path != "" {
		if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
			errs = append(errs, fmt.Errorf("%s %s: its directory is missing; name a file in a directory that you may write into", c.At("ready_file"), path))
		} else if info, err := os.Stat(path); err == nil && info.IsDir() {
			errs = append(errs, fmt.Errorf("%s %s: it is a directory; name a file in a directory that you may write into", c.At("ready_file"), path))
		}
	}
	return errors.Join(errs...)
}

// signingSecret returns the signing secret of an agent, nil if it has none.
func (s *Service) signingSecret(id core.AgentID) []byte { return (*s.parallax.signing.Load())[id] }
