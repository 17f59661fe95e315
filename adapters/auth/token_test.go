package auth_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/core"
)

func subprotocol(token string) string {
	return auth.TokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(token))
}

func TestATokenMayBeGivenInSeveralWays(t *testing.T) {
	a := newAuth(t, auth.Options{}, auth.Settings{Tokens: []auth.Token{
		{Hash: auth.HashOf("alice-token"), Principal: "alice"}, {Hash: auth.HashOf("plx_b"), Principal: "bob"},
	}})
	const token = "alice-token"
	for name, given := range map[string]auth.Credentials{
		"Bearer":                   bearer(token),
		"a scheme in small":        {Authorization: []string{"bearer  " + token + " "}},
		"ApiKey of Parallax":       {Authorization: []string{"ApiKey " + token}},
		"X-API-Key":                {APIKey: []string{token}},
		"both, which agree":        {Authorization: []string{"Bearer " + token}, APIKey: []string{token}},
		"a subprotocol":            {Subprotocols: []string{"dragoman, " + subprotocol(token)}},
		"without a scheme over pi": {Authorization: []string{token}, Bare: true},
	} {
		t.Run(name, func(t *testing.T) { admits(t, a, given, "alice") })
	}
	admits(t, a, auth.Credentials{Authorization: []string{"plx_b"}}, "bob")
}

func TestAWrongTokenIsRefused(t *testing.T) {
	a := newAuth(t, auth.Options{}, tokens("alice", "bob"))
	const alice, invalid = "alice-token", "Invalid authentication token"
	for name, c := range map[string]struct {
		given auth.Credentials
		want  string
	}{
		"none":                           {auth.Credentials{}, "a token is missing: send it as Authorization: Bearer"},
		"an unknown one":                 {bearer("carol-token"), invalid},
		"an empty one":                   {bearer(""), invalid},
		"an empty header":                {auth.Credentials{Authorization: []string{""}}, invalid},
		"an empty header over pi":        {auth.Credentials{Authorization: []string{""}, Bare: true}, invalid},
		"a scheme alone":                 {auth.Credentials{Authorization: []string{"Bearer"}}, invalid},
		"another scheme":                 {auth.Credentials{Authorization: []string{"Basic " + alice}}, invalid},
		"no scheme, elsewhere than pi":   {auth.Credentials{Authorization: []string{alice}}, "Invalid authentication token: send it as Authorization: Bearer TOKEN"},
		"an unknown one of Parallax":     {auth.Credentials{Authorization: []string{"plx_e"}}, invalid},
		"a giant":                        {bearer(strings.Repeat("x", 17<<10)), invalid},
		"twice in Authorization":         {auth.Credentials{Authorization: []string{"Bearer " + alice, "Bearer " + alice}}, "given twice"},
		"twice in X-API-Key":             {auth.Credentials{APIKey: []string{alice, alice}}, "given twice"},
		"twice as subprotocol":           {auth.Credentials{Subprotocols: []string{subprotocol(alice), subprotocol(alice)}}, "given twice"},
		"two that differ":                {auth.Credentials{Authorization: []string{"Bearer " + alice}, APIKey: []string{"bob-token"}}, "differ"},
		"good Bearer, bad X-API-Key":     {auth.Credentials{Authorization: []string{"Bearer " + alice}, APIKey: []string{"x"}}, "differ"},
		"bad Bearer, good X-API-Key":     {auth.Credentials{Authorization: []string{"Bearer x"}, APIKey: []string{alice}}, "differ"},
		"no Bearer, good X-API-Key":      {auth.Credentials{Authorization: []string{"Basic x"}, APIKey: []string{alice}}, invalid},
		"an empty X-API-Key":             {auth.Credentials{APIKey: []string{""}}, invalid},
		"a subprotocol that differs":     {auth.Credentials{Authorization: []string{"Bearer " + alice}, Subprotocols: []string{subprotocol("bob-token")}}, "differ"},
		"a subprotocol with padding":     {auth.Credentials{Subprotocols: []string{auth.TokenPrefix + base64.URLEncoding.EncodeToString([]byte(alice))}}, invalid},
		"a subprotocol with nothing":     {auth.Credentials{Subprotocols: []string{auth.TokenPrefix}}, invalid},
		"a good Unix user, a bad Bearer": {auth.Credentials{Authorization: []string{"Bearer x"}, Unix: &auth.UnixPeer{}}, invalid},
	} {
		t.Run(name, func(t *testing.T) { refuses(t, a, c.given, core.CodeUnauthenticated, c.want) })
	}
}

func TestTheSubprotocolToAcceptIsNotThatOfTheTokenIfThereIsAnother(t *testing.T) {
	own := subprotocol("t")
	for _, c := range []struct {
		offered []string
		want    string
	}{
		{nil, ""},
		{[]string{"graphql-ws", "dragoman"}, ""},
		{[]string{own}, own},
		{[]string{own + ", dragoman"}, "dragoman"},
		{[]string{"dragoman", own}, "dragoman"},
	} {
		if got := auth.Subprotocol(c.offered); got != c.want {
			t.Errorf("%q: got %q, want %q", c.offered, got, c.want)
		}
	}
}

func TestATokenSaysWhatItsPrincipalMay(t *testing.T) {
	a := newAuth(t, auth.Options{}, auth.Settings{Tokens: []auth.Token{{
		Hash: auth.HashOf("t"), Principal: "ci", Kind: core.KindService, Roles: []string{"builder"}, Agents: []string{"team-*"}, Operator: true,
	}}})
	p := admits(t, a, bearer("t"), "ci")
	if c := p.Credential; c == nil || c.Kind != core.KindService || !slices.Equal(c.Roles, []string{"builder"}) || !slices.Equal(c.Agents, []string{"team-*"}) || !p.Operator {
		t.Errorf("got %+v with %+v, want the kind, role, agents and right of the token", p, c)
	}
}

func TestAPrincipalIsKnownUntilItsTokenChangesOrExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := auth.Token{Hash: auth.HashOf("t"), Principal: "ann", Roles: []string{"r"}, Agents: []string{"a"}, Expires: time.Now().Add(time.Hour)}
		a := newAuth(t, auth.Options{}, auth.Settings{Tokens: []auth.Token{own}})
		p := admits(t, a, bearer("t"), "ann")
		p.Dialect = "acp"
		with := func(change func(*auth.Token)) auth.Settings {
			other := own
			change(&other)
			return auth.Settings{Tokens: []auth.Token{other}}
		}
		for name, s := range map[string]auth.Settings{
			"another token":     with(func(t *auth.Token) { t.Hash = auth.HashOf("u") }),
			"another principal": with(func(t *auth.Token) { t.Principal = "bob" }),
			"another role":      with(func(t *auth.Token) { t.Roles = []string{"s"} }),
			"no role":           with(func(t *auth.Token) { t.Roles = nil }),
			"another agent":     with(func(t *auth.Token) { t.Agents = []string{"a", "b"} }),
			"another kind":      with(func(t *auth.Token) { t.Kind = core.KindAgent }),
			"an operator":       with(func(t *auth.Token) { t.Operator = true }),
		} {
			if a.Apply(s); a.Knows(p) {
				t.Errorf("%s: got known, want not", name)
			}
		}
		again := own
		again.Roles = []string{"r"}
		if a.Apply(auth.Settings{Tokens: []auth.Token{again}}); !a.Knows(p) {
			t.Error("after a reload of the same: got unknown, want known")
		}
		before, _ := a.Authenticate(t.Context(), bearer("t"))
		a.Apply(auth.Settings{Tokens: []auth.Token{own}})
		if after, _ := a.Authenticate(t.Context(), bearer("t")); after != before {
			t.Errorf("after another: got %+v, want it equal to %+v", after, before)
		}
		time.Sleep(time.Hour)
		if a.Knows(p) {
			t.Error("an hour later: got known, want not")
		}
		refuses(t, a, bearer("t"), core.CodeUnauthenticated, "Token has expired")
	})
}

func TestAUnixUserNeedsNoToken(t *testing.T) {
	s := tokens("alice")
	s.Unix = []auth.UnixUser{{UID: 1000, Principal: "me", Operator: true}}
	a := newAuth(t, auth.Options{}, s)
	p := admits(t, a, auth.Credentials{Unix: &auth.UnixPeer{UID: 1000}}, "me")
	if !p.Operator {
		t.Errorf("got %+v, want an operator", p)
	}
	admits(t, a, auth.Credentials{Unix: &auth.UnixPeer{UID: 1}, Authorization: []string{"Bearer alice-token"}}, "alice")
	refuses(t, a, auth.Credentials{Unix: &auth.UnixPeer{UID: 1}}, core.CodeUnauthenticated, "the user with the id 1 may not use this socket")
	if a.Apply(tokens("alice")); a.Knows(p) {
		t.Error("without the user: got known, want not")
	}
}

func TestNoCredentialProvesANameUnderWhichTheHubRunsSomethingItself(t *testing.T) {
	settings := tokens("alice", "shout")
	a := newAuth(t, auth.Options{}, settings)
	shout, err := a.Authenticate(t.Context(), bearer("shout-token"))
	if err != nil || !a.Knows(shout) {
		t.Fatalf("before: got %v, want it admitted", err)
	}
	settings.Reserved = []string{"shout"}
	a.Apply(settings)
	_, err = a.Authenticate(t.Context(), bearer("shout-token"))
	if f := core.AsFault(err); err == nil || f.Code != core.CodeNotAuthorized || !strings.Contains(f.Message, "under the name shout itself") {
		t.Errorf("got %v, want it refused with the reason", err)
	}
	if a.Knows(shout) {
		t.Error("got its sessions kept, want them ended")
	}
	admits(t, a, bearer("alice-token"), "alice")
}
