package service

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/credentials"
	"github.com/dragoman-hub/dragoman/core/suggest"
)

// ruleWarnings returns what is probably wrong with the rules: those that never decide, those
// for a principal or a role that nobody has, and those with a wildcard that is none.
func ruleWarnings(c config.Config) (all []string) {
	if c.Auth.Rules == "" {
		return nil
	}
	table, err := credentials.ReadRules(c.Auth.Rules)
	if err != nil {
		return nil // which is an error
	}
	where := fmt.Sprintf("%s: %s: ", c.At("auth.rules"), c.Auth.Rules)
	for _, shadow := range table.Shadowed() {
		all = append(all, where+shadow.String())
	}
	known := knownToSettings(c)
	for _, r := range table.Rules() {
		for _, text := range slices.Concat(r.Who, r.To) {
			if strings.ContainsAny(text, "?[]{}") {
				all = append(all, fmt.Sprintf("%sline %d: in %q only * stands for other characters: ? [ ] { } are compared as they are", where, r.Line, text))
			}
		}
		for _, who := range r.Who {
			if doubt := known.doubt(who); doubt != "" {
				all = append(all, fmt.Sprintf("%sline %d: %s", where, r.Line, doubt))
			}
		}
	}
	return all
}

// known are the principals and roles of which the settings tell. With others, such as those of
// JSON Web Tokens, a list is nil.
type known struct{ principals, roles []string }

func knownToSettings(c config.Config) known {
	settings, err := credentials.ReadAuth(c.Auth)
	if err != nil || len(c.Auth.JWT) > 0 {
		return known{}
	}
	k := known{roles: []string{}}
	for _, t := range settings.Tokens {
		k.principals, k.roles = append(k.principals, t.Principal), append(k.roles, t.Roles...)
	}
	for _, one := range settings.Keys {
		k.principals, k.roles = append(k.principals, one.Principal), append(k.roles, one.Roles...)
	}
	for _, u := range settings.Unix {
		k.principals = append(k.principals, u.Principal)
	}
	for _, a := range c.Agents {
		k.principals = append(k.principals, a.Name)
	}
	for _, p := range c.Packs {
		k.principals = append(k.principals, p.Name)
	}
	if c.TLS.ClientCA != "" || c.Auth.Registration != "disabled" {
		k.principals = nil
	}
	return k
}

// doubt returns why a rule probably matches nobody, and what may be meant; "" if it may match.
func (k known) doubt(who string) string {
	name, isRole := strings.CutPrefix(who, "role:")
	all, has := k.principals, "no token or key is of the principal"
	if isRole {
		all, has = k.roles, "no token or key has the role"
	}
	if all == nil || strings.Contains(name, "*") || slices.Contains(all, name) {
		return ""
	}
	text := fmt.Sprintf("%s %s", has, name)
	if near := suggest.Nearest(name, all); near != "" {
		text += fmt.Sprintf(": did you mean %s?", near)
	}
	return text
}
