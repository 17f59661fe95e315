package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core/edge"
)

// kept is a hub whose address and credential 'dragoman login' has kept. They belong together: the credential is sent to
// no other address.
type kept struct {
	Hub      string `json:"hub"`
	Token    string `json:"token,omitempty"`
	CA       string `json:"ca,omitempty"`
	Cert     string `json:"cert,omitempty"`
	Key      string `json:"key,omitempty"`
	Insecure bool   `json:"insecure,omitempty"`
}

// contextsFile returns the path of the file with the hubs that are kept.
func contextsFile() string { return filepath.Join(config.UserDir(os.Environ()), "contexts.json") }

// readContexts returns the hubs that are kept, by name.
func readContexts() (map[string]kept, error) {
	all := map[string]kept{}
	path := contextsFile()
	text, err := edge.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return all, nil
	case err != nil:
		return nil, err
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s: %w: mend the file, or remove it and log in again", path, err)
	}
	return all, nil
}

// writeContexts replaces the file with the hubs that are kept. Only its owner may read it.
func writeContexts(all map[string]kept) error {
	path := contextsFile()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := printJSON(&text, all); err != nil {
		return err
	}
	if err := os.Chmod(path, 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) { // it is replaced with its mode
		return err
	}
	return replaceFile(path, text.Bytes())
}

// contextNamed returns the hub that is kept under a name, which was given in the flag or variable.
func contextNamed(name, given string) (kept, error) {
	all, err := readContexts()
	if err != nil {
		return kept{}, client.AddressError{Err: fmt.Errorf("%s %s: %w", given, quoted(name), err)}
	}
	if one, known := all[name]; known {
		return one, nil
	}
	return kept{}, client.AddressError{Err: fmt.Errorf("%s: %w", given, unknownContext(name, all))}
}

func unknownContext(name string, all map[string]kept) error {
	if len(all) == 0 {
		return fmt.Errorf("no hub is kept as %s: 'dragoman login URL' keeps one", quoted(name))
	}
	var names []string
	for _, known := range slices.Sorted(maps.Keys(all)) {
		names = append(names, quoted(known))
	}
	return fmt.Errorf("no hub is kept as %s: use %s, or 'dragoman login URL'", quoted(name), strings.Join(names, ", "))
}
