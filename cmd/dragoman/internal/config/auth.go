package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Auth are the settings of authentication.
type Auth struct {
	// Tokens is the path of the tokens file. The tokens are not settings, so that they are
	// never shown.
	Tokens string
	// SSHKeys is the path of the file with SSH keys, and Registration says what becomes of
	// others.
	SSHKeys      string
	Registration string
	// JWT are the issuers of tokens.
	JWT Issuers
	// Rules is the path of the file with the rules; "" for none.
	Rules string
}

// Required reports whether those who connect have to authenticate.
func (a Auth) Required() bool {
	return a.Tokens != "" || a.SSHKeys != "" || a.Registration != "disabled" || len(a.JWT) > 0
}

func (a *Auth) settings(t *table) {
	add(t, "tokens", &a.Tokens, "", "YAML file with the tokens of everybody who may connect. Without one, and without the other settings of authentication, nobody has to authenticate.").path()
	add(t, "ssh_keys", &a.SSHKeys, "", "File with the SSH keys of those who sign their calls, as the clients of Coven do: lines of authorized_keys with the options principal, agents, roles and kind.").path()
	add(t, "registration", &a.Registration, "disabled", "What becomes of an unknown SSH key: it is refused (disabled), waits for 'dragoman principals approve' (pending), or may connect at once under a name of its own (approved).").oneOf("disabled", "pending", "approved")
	add(t, "jwt", &a.JWT, nil, "Issuers of JSON Web Tokens that are accepted as Bearer.")
	add(t, "rules", &a.Rules, "", "YAML file with the rules that say who may do what. Without one everybody may ask every agent, and read and steer what he asked himself; operators may do everything.").path()
}

// Issuer is an issuer of JSON Web Tokens.
type Issuer struct {
	// Issuer and Audience are what the claims iss and aud must have. Both are left out for the
	// tokens of a Coven gateway.
	Issuer   string `json:"issuer,omitempty"`
	Audience string `json:"audience,omitempty"`
	// JWKS is the URL of the key set, SecretFile a file with the secret of an HMAC instead.
	JWKS       string `json:"jwks,omitempty"`
	SecretFile string `json:"secret_file,omitempty"`
	// PrincipalClaim names the claim with the principal, RolesClaim that with the roles.
	PrincipalClaim string `json:"principal_claim,omitempty"`
	RolesClaim     string `json:"roles_claim,omitempty"`
}

// Issuers is the list of issuers of the settings.
type Issuers []Issuer

func (i *Issuers) read(path string, raw any, report reporter) {
	*i = readEntries[Issuer](path, raw, report)
	for n := range *i {
		of := &(*i)[n]
		if first := slices.IndexFunc(*i, func(other Issuer) bool { return other.Issuer == of.Issuer }); first < n {
			report(fmt.Sprintf("%s[%d].issuer", path, n), fmt.Sprintf("it is that of %s[%d] too: give an issuer once", path, first))
		}
	}
}

// String describes the issuers: their names.
func (i Issuers) String() string {
	return strings.Join(each(i, func(one Issuer) string { return one.Issuer }), ", ")
}

func (i *Issuer) settings() *table {
	t := &table{}
	add(t, "issuer", &i.Issuer, "", "Claim iss of its tokens.")
	add(t, "audience", &i.Audience, "", "Claim aud of tokens for this hub.")
	add(t, "jwks", &i.JWKS, "", "URL of its key set (RFC 7517), by https.")
	add(t, "secret_file", &i.SecretFile, "", "File with the secret of tokens that are signed with an HMAC, instead of jwks. It has at least 32 bytes.").path()
	add(t, "principal_claim", &i.PrincipalClaim, "", "Claim with the principal. The default is sub.")
	add(t, "roles_claim", &i.RolesClaim, "", "Claim with the roles: a list, or text with spaces. A dot leads into an object.")
	return t
}

func (i *Issuer) check(report reporter) {
	switch {
	case i.JWKS != "" && i.SecretFile != "":
		report("secret_file", "an issuer has a key set (jwks) or a secret, not both: remove one")
	case i.JWKS == "" && i.SecretFile == "":
		report("jwks", "missing; write the URL of its key set, or secret_file")
	case i.JWKS != "":
		if text := checkKeySetURL(i.JWKS); text != "" {
			report("jwks", text)
		}
	}
	switch {
	case i.Issuer == "" && (i.JWKS != "" || i.Audience != ""):
		report("issuer", "missing; write the claim iss of its tokens. Only the tokens of a Coven gateway have none, and no audience")
	case i.Issuer != "" && i.Audience == "":
		report("audience", "missing; write the claim aud of tokens for this hub, so that a token for another service is refused")
	}
}

// checkKeySetURL says what is wrong with an address: among others that somebody on the way could
// give other keys.
func checkKeySetURL(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "want an https address, got " + shown(address)
	case u.User != nil:
		return "it contains a password, which is not sent: leave it out"
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return "want https: over http anybody on the way could give keys of their own"
	}
	return ""
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
