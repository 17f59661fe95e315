package service

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
)

// leastSecretBytes is how long a secret to sign with has to be, so that it is not
// guessed from a signature.
const leastSecretBytes = 16

// signingSecrets are what Parallax agents sign their messages with, by their ids.
type signingSecrets map[core.AgentID][]byte

// readSigningSecrets reads the file of secrets: a map of agents, each with its secret.
// No path is no secrets. No error repeats what stands in the file.
func readSigningSecrets(path string) (signingSecrets, error) {
	if path == "" {
		return signingSecrets{}, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		var unread *fs.PathError
		if errors.As(err, &unread) {
			err = unread.Err
		}
		return nil, fmt.Errorf("parallax.secrets: %s: %w; name a YAML file that the hub may read", path, err)
	}
	all, err := config.ReadYAML(data)
	if err != nil {
		return nil, fmt.Errorf("parallax.secrets: %s is not YAML%s", path, placeOf(err))
	}
	read := signingSecrets{}
	for agent, secret := range all {
		text, ok := secret.(string)
		if !ok || core.CheckAgentID(core.AgentID(agent)) != nil {
			return nil, fmt.Errorf("parallax.secrets: %s: want ids of agents, each with its secret in quotes", path)
		}
		if len(text) < leastSecretBytes {
			return nil, fmt.Errorf("parallax.secrets: %s: the secret of %q is short: want at least %d bytes", path, agent, leastSecretBytes)
		}
		read[core.AgentID(agent)] = []byte(text)
	}
	return read, nil
}

// signingSecret is the secret of an agent; nil if it has none.
func (s *Service) signingSecret(id core.AgentID) []byte { return (*s.parallax.signing.Load())[id] }
