package credentials

import (
	"fmt"

	"github.com/dragoman-hub/dragoman/adapters/auth"
)

// ReadKeys reads the file of SSH keys (the setting auth.ssh_keys): lines as in OpenSSH's
// authorized_keys, with the options of [auth.ReadKeys]. Without a path there are no keys. No
// error quotes the file, which may be a private key by mistake.
func ReadKeys(path string) ([]auth.Key, error) {
	if path == "" {
		return nil, nil
	}
	data, err := readAtMost(path, maxFileBytes, "a file with lines of authorized_keys")
	if err != nil {
		return nil, fmt.Errorf("auth.ssh_keys: %s: %w", path, err)
	}
	keys, err := auth.ReadKeys(data)
	switch {
	case err != nil:
		return nil, fmt.Errorf("auth.ssh_keys: %s, %w", path, err)
	case len(keys) == 0:
		return nil, fmt.Errorf(`auth.ssh_keys: %s has no key: write lines such as principal="alice" ssh-ed25519 AAAA…`, path)
	}
	return keys, nil
}
