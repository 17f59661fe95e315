package auth_test

import (
	"encoding/hex"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/core"
)

func newTokens(list []auth.Token) *auth.Tokens {
	tokens := &auth.Tokens{}
	tokens.Replace(list)
	return tokens
}

func TestATokenSaysWhoShowsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		soon := time.Now().Add(time.Hour)
		proof := func(token string) string { h := auth.HashOf(token); return hex.EncodeToString(h[:]) }
		bob := core.Principal{ID: "bob", Authenticated: true, Until: soon, Proof: proof("b")}
		tokens := newTokens([]auth.Token{
			{Hash: auth.HashOf("a"), Principal: "alice", Operator: true},
			{Hash: auth.HashOf("b"), Principal: "bob", Expires: soon},
		})
		for token, want := range map[string]core.Principal{
			"a": {ID: "alice", Authenticated: true, Operator: true, Proof: proof("a") + "/operator"}, "b": bob, "c": {}, "": {},
		} {
			got, known, err := tokens.Find(token)
			if err != nil || got != want || known != (want.ID != "") {
				t.Errorf("%q: got %+v, known %v and %v, want %+v", token, got, known, err, want)
			}
		}
		<-time.After(time.Hour)
		if _, known, err := tokens.Find("b"); !known || err == nil || core.AsFault(err).Code != core.CodeUnauthenticated || !strings.Contains(err.Error(), "Token has expired") {
			t.Errorf("an hour later: got %v, want that it has expired", err)
		}
		if bob.Dialect = "acp"; tokens.Knows(bob) {
			t.Error("an hour later: got bob known, want him not")
		}
	})
}

func TestTokensAreReplacedAtOnce(t *testing.T) {
	tokens := newTokens([]auth.Token{{Hash: auth.HashOf("a"), Principal: "alice"}})
	tokens.Replace([]auth.Token{{Hash: auth.HashOf("z"), Principal: "zoe"}})
	if p, known, _ := tokens.Find("a"); known {
		t.Errorf("the token that is gone: got %+v, want it unknown", p)
	}
	if p, _, err := tokens.Find("z"); err != nil || p.ID != "zoe" {
		t.Errorf("the new token: got %+v and %v, want zoe", p, err)
	}
}

func TestSomebodyIsKnownAsLongAsHisTokenSaysTheSameOfHim(t *testing.T) {
	soon, later := time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
	own := auth.Token{Hash: auth.HashOf("a"), Principal: "alice", Operator: true, Expires: later}
	for _, c := range []struct {
		name string
		now  auth.Token
		want bool
	}{
		{"the same", own, true},
		{"another token", auth.Token{Hash: auth.HashOf("b"), Principal: "alice", Operator: true, Expires: later}, false},
		{"another principal", auth.Token{Hash: own.Hash, Principal: "bob", Operator: true, Expires: later}, false},
		{"an operator no more", auth.Token{Hash: own.Hash, Principal: "alice", Expires: later}, false},
		{"a role more", auth.Token{Hash: own.Hash, Principal: "alice", Operator: true, Expires: later, Roles: []string{"dev"}}, false},
		{"another time", auth.Token{Hash: own.Hash, Principal: "alice", Operator: true, Expires: soon}, false},
	} {
		p := own.Owner()
		p.Dialect = "acp"
		if got := newTokens([]auth.Token{c.now}).Knows(p); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	if newTokens([]auth.Token{own}).Knows(core.Principal{ID: "alice", Authenticated: true}) {
		t.Error("without a proof: got known, want not")
	}
}

func TestAHashIsParsedAndTheErrorOfABadOneDoesNotRepeatIt(t *testing.T) {
	h, err := auth.ParseHash("ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb")
	if err != nil || h != auth.HashOf("a") {
		t.Errorf("got %x and %v, want the hash of a", h, err)
	}
	for _, text := range []string{"", "secret-token", "ca97"} {
		if _, err := auth.ParseHash(text); err == nil || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%q: got %v, want an error that does not repeat it", text, err)
		}
	}
}
