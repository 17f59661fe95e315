package credentials

import (
	"errors"
	"fmt"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// ReadAuth reads all files of the settings of authentication but the rules. Client certificates
// and Unix users are left to the caller. All mistakes are reported together.
func ReadAuth(c config.Auth) (s auth.Settings, err error) {
	var mistakes [4]error
	s.Tokens, mistakes[0] = ReadTokens(c.Tokens)
	s.Keys, mistakes[1] = ReadKeys(c.SSHKeys)
	s.Issuers, mistakes[2] = ReadIssuers(c.JWT)
	mistakes[3] = s.Registration.UnmarshalText([]byte(c.Registration))
	if err := errors.Join(mistakes[:]...); err != nil {
		return auth.Settings{}, err
	}
	return s, nil
}

// CheckNames returns an error for each principal of a token or an SSH key that has the name of an
// agent or a pack of the settings. Those act under their names: such a principal would have their
// rights, their tasks would be its own, and it could not decide for them.
func CheckNames(c config.Config, s auth.Settings) error {
	var errs []error
	check := func(place config.Origin, kind, name string) {
		taken := func(setting, path string, line int) {
			errs = append(errs, fmt.Errorf("%s: the %s %s acts under this name, which is also the principal of %s in %s, line %d: give one of the two another name",
				place, kind, name, setting, path, line))
		}
		for _, t := range s.Tokens {
			if t.Principal == name {
				taken("auth.tokens", c.Auth.Tokens, t.Line)
			}
		}
		for _, k := range s.Keys {
			if k.Principal == name {
				taken("auth.ssh_keys", c.Auth.SSHKeys, k.Line)
			}
		}
	}
	for i, a := range c.Agents {
		check(c.At(fmt.Sprintf("agents[%d].name", i)), "agent", a.Name)
	}
	for i, p := range c.Packs {
		check(c.At(fmt.Sprintf("packs[%d].name", i)), "pack", p.Name)
	}
	return errors.Join(errs...)
}

// Reserved returns the names of the agents and packs of the settings, which no credential may
// prove.
func Reserved(c config.Config) (names []string) {
	for _, a := range c.Agents {
		names = append(names, a.Name)
	}
	for _, p := range c.Packs {
		names = append(names, p.Name)
	}
	return names
}
