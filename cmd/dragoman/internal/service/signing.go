package service

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
)

// leastSecretBytes is the minimum length of a signing secret, so that it cannot be guessed
// from a signature.
const leastSecretBytes = 16

// signingSecrets are the secrets that Parallax agents sign messages with, by agent id.
type signingSecrets map[core.AgentID][]byte

// readSigningSecrets reads the file of signing secrets: a map of agents, each with its
// secret. Without a path there are none. No error quotes the file.
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

// signingSecret is the signing secret of an agent, nil if it has none.
func (s *Service) signingSecret(id core.AgentID) []byte { return (*s.parallax.signing.Load())[id] }
