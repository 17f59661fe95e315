package auth_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
)

// hubOf returns the authenticator of a hub of a cluster.
func hubOf(t *testing.T, claims *coretest.Claims, hub string, r auth.Registration, log core.RecordLog) *auth.Authenticator {
	t.Helper()
	return newAuth(t, auth.Options{Agreed: claims.Of(hub), Registered: log}, registering(r))
}

// tell tells a hub what another one has of a principal.
func tell(t *testing.T, from, to *auth.Authenticator, principal string) {
	t.Helper()
	record, known := from.Record(principal)
	if !known {
		t.Fatalf("%s is not known where it was decided on", principal)
	}
	if err := to.Learn(t.Context(), [][]byte{record}); err != nil {
		t.Error(err)
	}
}

func TestAKeyThatRegisteredAtOneHubIsKnownAtAll(t *testing.T) {
	claims := coretest.NewClaims(nil)
	logs := map[string]*coretest.MemoryLog{"a": {}, "b": {}}
	a, b := hubOf(t, claims, "a", auth.RegistrationPending, logs["a"]), hubOf(t, claims, "b", auth.RegistrationPending, logs["b"])
	c := newEd25519(t)
	name := nameOf(t, c)
	try := func() auth.Credentials { return signed(c.sign(t, time.Now(), nonce())) }
	refuses(t, a, try(), core.CodeNotAuthorized, "agent registered with pending status (principal_id: "+name+")")
	refuses(t, b, try(), core.CodeNotAuthorized, "principal status is pending")
	if err := b.Approve(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	admits(t, a, try(), name) // though nobody has told it
	p := admits(t, b, try(), name)
	if err := a.Revoke(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	tell(t, a, b, name)
	if b.Knows(p) {
		t.Error("got the session at b known after it was revoked at a")
	}
	refuses(t, b, try(), core.CodeNotAuthorized, "principal has been revoked")
	for hub, log := range map[string]core.RecordLog{"a": logs["a"], "b": logs["b"], "one without a log": nil} {
		refuses(t, hubOf(t, claims, hub, auth.RegistrationApproved, log), try(), core.CodeNotAuthorized, "principal has been revoked")
	}

	// What was true before does not come back.
	before := hubOf(t, claims, "d", auth.RegistrationApproved, nil)
	if err := before.Learn(t.Context(), [][]byte{[]byte(`{"fingerprint":"` + c.key(t, `principal="x"`).Fingerprint.String() + `","principal":"` + name + `","status":"approved","since":"2026-01-01T00:00:00Z","changes":1}`)}); err != nil {
		t.Fatal(err)
	}
	tell(t, a, before, name)
	refuses(t, before, try(), core.CodeNotAuthorized, "principal has been revoked")
}

func TestAHubThatWasAwayDoesNotLetInWhoWasRevokedMeanwhile(t *testing.T) {
	claims, log := coretest.NewClaims(nil), &coretest.MemoryLog{}
	a, b := hubOf(t, claims, "a", auth.RegistrationApproved, nil), hubOf(t, claims, "b", auth.RegistrationApproved, log)
	c := newEd25519(t)
	try := func() auth.Credentials { return signed(c.sign(t, time.Now(), nonce())) }
	admits(t, b, try(), nameOf(t, c))
	admits(t, a, try(), nameOf(t, c))
	if err := a.Revoke(t.Context(), nameOf(t, c)); err != nil {
		t.Fatal(err)
	}
	refuses(t, hubOf(t, claims, "b", auth.RegistrationApproved, log), try(), core.CodeNotAuthorized, "principal has been revoked")
}

func TestANameThatIsTakenAtAnotherHubIsTakenAtAll(t *testing.T) {
	claims := coretest.NewClaims(nil)
	c := newEd25519(t)
	if _, err := claims.Of("a").Claim(t.Context(), "principal."+nameOf(t, c), "another key", nil); err != nil {
		t.Fatal(err)
	}
	f := c.key(t, `principal="x"`).Fingerprint.String()
	for _, hub := range []string{"a", "b"} {
		admits(t, hubOf(t, claims, hub, auth.RegistrationApproved, nil), signed(c.sign(t, time.Now(), nonce())), "agent-"+f[len(f)-16:])
	}
}

func TestAHubThatWasAloneBringsItsKeysAlong(t *testing.T) {
	claims, log := coretest.NewClaims(nil), &coretest.MemoryLog{}
	c := newEd25519(t)
	try := func() auth.Credentials { return signed(c.sign(t, time.Now(), nonce())) }
	admits(t, newAuth(t, auth.Options{Registered: log}, registering(auth.RegistrationApproved)), try(), nameOf(t, c))
	a, b := hubOf(t, claims, "a", auth.RegistrationPending, log), hubOf(t, claims, "b", auth.RegistrationPending, nil)
	admits(t, a, try(), nameOf(t, c))
	admits(t, b, try(), nameOf(t, c))
	records, next := a.Registered("")
	if len(records) != 1 || next != "" {
		t.Errorf("got %q and %q, want one record for other hubs", records, next)
	}
}

func TestAKeyIsToTryAgainWhileTheHubsCannotAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		claims := coretest.NewClaims(nil)
		a := hubOf(t, claims, "a", auth.RegistrationApproved, nil)
		c := newEd25519(t)
		try := func() auth.Credentials { return signed(c.sign(t, time.Now(), nonce())) }
		known := newEd25519(t)
		admits(t, a, signed(known.sign(t, time.Now(), nonce())), nameOf(t, known))
		claims.Stall(true)
		if f := refuses(t, a, try(), core.CodeUnauthenticated, "the cluster could not be asked"); !f.Retryable {
			t.Error("got it final, want it to be tried again")
		}
		admits(t, a, signed(known.sign(t, time.Now(), nonce())), nameOf(t, known))
		claims.Stall(false)
		admits(t, a, try(), nameOf(t, c))
	})
}
