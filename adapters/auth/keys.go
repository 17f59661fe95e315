package auth

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/dragoman-hub/dragoman/core"
)

// Key is what the hub knows of the SSH key of a principal.
type Key struct {
	Fingerprint Fingerprint
	Principal   string
	Kind        core.PrincipalKind
	Roles       []string
	Agents      []string
	// Line is its line in the file that it comes from; 0 for none.
	Line int
}

// Owner returns the principal of a sender with the key.
func (k Key) Owner() core.Principal {
	return core.Principal{
		ID: k.Principal, Authenticated: true, Proof: proofSSH + k.Fingerprint.String(),
		Credential: newCredential(k.Kind, k.Roles, k.Agents),
	}
}

// keyOptions are the options that a line with a key may have.
const keyOptions = `principal="NAME" and optionally agents="GLOB,…", roles="ROLE,…" and kind="person|agent|service"`

// ReadKeys reads lines of the form of OpenSSH's authorized_keys, with the options principal,
// agents, roles and kind. Empty lines and comments are skipped. An error names the line, and
// does not quote it, since it may be a private key by mistake.
func ReadKeys(data []byte) ([]Key, error) {
	var all []Key
	lines := map[Fingerprint]int{}
	n := 0
	for line := range bytes.Lines(data) {
		n++
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		key, err := readKey(line)
		if err == nil && lines[key.Fingerprint] > 0 {
			err = fmt.Errorf("its key is in line %d too: give everybody a key of their own", lines[key.Fingerprint])
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		lines[key.Fingerprint], key.Line = n, n
		all = append(all, key)
	}
	return all, nil
}

// readKey reads one line.
func readKey(line []byte) (k Key, err error) {
	if bytes.Contains(line, []byte("PRIVATE KEY")) {
		return k, errors.New("this is a private key: name the file that ends in .pub, and make a new key if others could read this one")
	}
	key, _, options, _, err := ssh.ParseAuthorizedKey(line)
	if err != nil {
		return k, fmt.Errorf("want %s, a space, and a public key such as ssh-ed25519 AAAA…", keyOptions)
	}
	if err := checkKey(key); err != nil {
		return k, err
	}
	k.Fingerprint = fingerprintOf(key)
	seen := map[string]bool{}
	for _, option := range options {
		name, value, _ := strings.Cut(option, "=")
		name = strings.ToLower(name)
		text, ok := unquote(value)
		switch {
		case !ok:
			return k, fmt.Errorf("an option is not of the form NAME=\"VALUE\": want %s", keyOptions)
		case seen[name]:
			return k, errors.New("an option is given twice")
		}
		seen[name] = true
		if err := k.set(name, text); err != nil {
			return k, err
		}
	}
	if k.Principal == "" {
		return k, errors.New(`it does not say whose key it is: begin it with principal="NAME" and a space`)
	}
	return k, nil
}

// set sets what an option says. Those of OpenSSH are refused rather than ignored, since they
// restrict a key.
func (k *Key) set(option, value string) (err error) {
	switch option {
	case "principal":
		k.Principal = value
		return CheckPrincipal(value)
	case "agents":
		if k.Agents, err = CheckAgents(strings.Split(value, ",")); err != nil {
			return fmt.Errorf("agents: %w", err)
		}
	case "roles":
		if k.Roles, err = CheckRoles(strings.Split(value, ",")); err != nil {
			return fmt.Errorf("roles: %w", err)
		}
	case "kind":
		if k.Kind.UnmarshalText([]byte(value)) != nil || k.Kind == 0 {
			return errors.New("kind: want person, agent or service")
		}
	default:
		return fmt.Errorf("it has an unknown option: want %s", keyOptions)
	}
	return nil
}

// unquote returns a value in double quotes, in which \" stands for one.
func unquote(text string) (string, bool) {
	if len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
		return "", false
	}
	return strings.ReplaceAll(text[1:len(text)-1], `\"`, `"`), true
}
