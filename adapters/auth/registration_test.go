package auth_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
)

// registering are the settings of a hub with a token and a registration.
func registering(r auth.Registration) auth.Settings {
	s := tokens("alice")
	s.Registration = r
	return s
}

func nameOf(t testing.TB, c client) string {
	t.Helper()
	f := c.key(t, `principal="x"`).Fingerprint.String()
	return "agent-" + f[len(f)-8:]
}

func TestAnUnknownKeyIsRefusedWithoutRegistration(t *testing.T) {
	a := newAuth(t, auth.Options{}, registering(auth.RegistrationDisabled))
	given := signed(newEd25519(t).sign(t, time.Now(), nonce()))
	for range 2 { // a nonce of a key that lets nobody in is not kept
		refuses(t, a, given, core.CodeUnauthenticated, "unknown public key")
	}
}

func TestAnApprovedRegistrationConnectsAtOnceUnderItsOwnName(t *testing.T) {
	a := newAuth(t, auth.Options{}, registering(auth.RegistrationApproved))
	c := newEd25519(t)
	p := admits(t, a, signed(c.sign(t, time.Now(), nonce())), nameOf(t, c))
	if p.Credential != nil || p.Operator {
		t.Errorf("got %+v, want neither agents nor rights", p)
	}
	given := signed(c.sign(t, time.Now(), nonce()))
	admits(t, a, given, nameOf(t, c))
	refuses(t, a, given, core.CodeUnauthenticated, "nonce already used")
	a.Apply(registering(auth.RegistrationDisabled))
	admits(t, a, signed(c.sign(t, time.Now(), nonce())), nameOf(t, c))
}

func TestAPendingKeyWaitsForApprovalAndARevokedOneIsOut(t *testing.T) {
	log := &coretest.MemoryLog{}
	opts := auth.Options{Registered: log}
	a := newAuth(t, opts, registering(auth.RegistrationPending))
	c := newEd25519(t)
	name := nameOf(t, c)
	try := func() auth.Credentials { return signed(c.sign(t, time.Now(), nonce())) }
	refuses(t, a, try(), core.CodeNotAuthorized, "agent registered with pending status (principal_id: "+name+") - admin approval required")
	refuses(t, a, try(), core.CodeNotAuthorized, "principal status is pending")
	if all := a.Principals(); len(all) != 2 || all[0].Principal != name || all[0].Status != core.PrincipalPending || all[0].Since.IsZero() || all[1].Credential != "token" {
		t.Errorf("got %+v, want the pending key before the token", all)
	}

	restarted := newAuth(t, opts, registering(auth.RegistrationPending))
	refuses(t, restarted, try(), core.CodeNotAuthorized, "principal status is pending")
	if err := restarted.Approve(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	p := admits(t, restarted, try(), name)

	restarted = newAuth(t, opts, registering(auth.RegistrationDisabled))
	admits(t, restarted, try(), name)
	if err := restarted.Revoke(t.Context(), name); err != nil || restarted.Knows(p) {
		t.Errorf("got %v and known %v, want it revoked and not known", err, restarted.Knows(p))
	}
	refuses(t, restarted, try(), core.CodeNotAuthorized, "principal has been revoked")

	restarted = newAuth(t, opts, registering(auth.RegistrationApproved))
	refuses(t, restarted, try(), core.CodeNotAuthorized, "principal has been revoked")
	if err := restarted.Approve(t.Context(), name); err != nil || !restarted.Knows(p) {
		t.Errorf("got %v and known %v, want it approved again", err, restarted.Knows(p))
	}
}

func TestAKeyInTheSettingsPrevailsOverItsRegistration(t *testing.T) {
	c := newEd25519(t)
	a := newAuth(t, auth.Options{}, registering(auth.RegistrationApproved))
	given := signed(c.sign(t, time.Now(), nonce()))
	p := admits(t, a, given, nameOf(t, c))
	s := registering(auth.RegistrationApproved)
	s.Keys = []auth.Key{c.key(t, ana)}
	if a.Apply(s); a.Knows(p) {
		t.Error("got the session of the registered principal known, want not")
	}
	refuses(t, a, given, core.CodeUnauthenticated, "nonce already used")
	admits(t, a, signed(c.sign(t, time.Now(), nonce())), "ana")
}

func TestARegisteredNameIsNotThatOfAnybodyElse(t *testing.T) {
	c := newEd25519(t)
	short := nameOf(t, c)
	s := tokens(short)
	s.Registration = auth.RegistrationApproved
	a := newAuth(t, auth.Options{}, s)
	f := c.key(t, `principal="x"`).Fingerprint.String()
	admits(t, a, signed(c.sign(t, time.Now(), nonce())), "agent-"+f[len(f)-16:])
}

func TestDecisionsAboutOthersSayWhatToDo(t *testing.T) {
	s := registering(auth.RegistrationPending)
	a := newAuth(t, auth.Options{}, s)
	for name, want := range map[string]string{"nobody": "dragoman principals list", "alice": "change auth.tokens or auth.ssh_keys"} {
		for _, decide := range []func(context.Context, string) error{a.Approve, a.Revoke} {
			if err := decide(t.Context(), name); err == nil || core.AsFault(err).Code != core.CodeInvalid || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", name, err, want)
			}
		}
	}
}

func TestTheListOfPrincipalsIsJSON(t *testing.T) {
	a := newAuth(t, auth.Options{}, tokens("alice"))
	got, err := json.Marshal(a.Principals())
	if want := `[{"principal":"alice","credential":"token","status":"approved"}]`; err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

// brokenLog is a log that cannot be written, or read.
type brokenLog struct{ coretest.MemoryLog }

func (*brokenLog) Append(context.Context, ...[]byte) error { return errors.New("disk full") }

func TestAKeyThatCannotBeStoredIsNotRegistered(t *testing.T) {
	a := newAuth(t, auth.Options{Registered: &brokenLog{}}, registering(auth.RegistrationApproved))
	fault := refuses(t, a, signed(newEd25519(t).sign(t, time.Now(), nonce())), core.CodeUnauthenticated, "could not be stored")
	if !fault.Retryable || len(a.Principals()) != 1 {
		t.Errorf("got %+v and %+v, want it retryable and nobody new", fault, a.Principals())
	}
}

func TestRecordsThatCannotBeReadEndTheStart(t *testing.T) {
	for _, record := range []string{`{`, `{}`, `{"fingerprint":"zz","principal":"a","status":"approved","since":"2026-01-01T00:00:00Z"}`, `{"fingerprint":"","status":"king"}`} {
		log := &coretest.MemoryLog{}
		if err := log.Append(t.Context(), []byte(record)); err != nil {
			t.Fatal(err)
		}
		if _, err := auth.New(t.Context(), auth.Options{Registered: log}); err == nil || !strings.Contains(err.Error(), "reading the registered principals") {
			t.Errorf("%s: got %v, want that the registered principals cannot be read", record, err)
		}
	}
}

func TestConcurrentRegistrationsOfOneKeyMakeOnePrincipal(t *testing.T) {
	log := &coretest.MemoryLog{}
	a := newAuth(t, auth.Options{Registered: log}, registering(auth.RegistrationApproved))
	c := newEd25519(t)
	var all sync.WaitGroup
	for range 20 {
		given := signed(c.sign(t, time.Now(), nonce()))
		all.Go(func() { admits(t, a, given, nameOf(t, c)) })
	}
	all.Wait()
	var records []string
	_ = log.Replay(t.Context(), func(_ time.Time, r []byte) bool { records = append(records, string(r)); return true })
	if len(records) != 1 || slices.ContainsFunc(records, func(r string) bool { return strings.Contains(r, c.line) }) {
		t.Errorf("got the records %q, want one without the key", records)
	}
}

func TestRegistrationsAreReadByName(t *testing.T) {
	for text, want := range map[string]auth.Registration{"": auth.RegistrationDisabled, "disabled": auth.RegistrationDisabled, "pending": auth.RegistrationPending, "approved": auth.RegistrationApproved} {
		var got auth.Registration
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want || text != "" && got.String() != text {
			t.Errorf("%q: got %v, %v; want %v", text, got, err, want)
		}
	}
	if err := new(auth.Registration).UnmarshalText([]byte("open")); err == nil {
		t.Error("open: got no error, want one")
	}
}

func TestOnlySoManyKeysWaitForApproval(t *testing.T) {
	a := newAuth(t, auth.Options{}, registering(auth.RegistrationPending))
	var first client
	for i := range 1000 {
		c := newEd25519(t)
		if i == 0 {
			first = c
		}
		refuses(t, a, signed(c.sign(t, time.Now(), nonce())), core.CodeNotAuthorized, "registered with pending status")
	}
	late := newEd25519(t)
	fault := refuses(t, a, signed(late.sign(t, time.Now(), nonce())), core.CodeUnauthenticated, "1000 keys wait for approval already: ask an operator to decide on them")
	if !fault.Retryable {
		t.Errorf("got %+v, want it retryable", fault)
	}
	if err := a.Revoke(t.Context(), nameOf(t, first)); err != nil {
		t.Fatal(err)
	}
	refuses(t, a, signed(late.sign(t, time.Now(), nonce())), core.CodeNotAuthorized, "registered with pending status")
}

// A flood of keys keeps others out for an hour, and the store from growing without a bound.
func TestTheKeyThatHasWaitedLongestMakesRoomAfterAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &coretest.MemoryLog{}
		a := newAuth(t, auth.Options{Registered: log}, registering(auth.RegistrationPending))
		keys := make([]client, 1001)
		try := func(i int) error {
			_, err := a.Authenticate(t.Context(), signed(keys[i].sign(t, time.Now(), nonce())))
			return err
		}
		for i := range keys {
			keys[i] = newEd25519(t)
			if err := try(i); i < 1000 && core.AsFault(err).Code != core.CodeNotAuthorized || i == 1000 && core.AsFault(err).Code != core.CodeUnauthenticated {
				t.Fatalf("key %d: got %v, want 1000 that wait and one refused", i, err)
			}
		}
		if err := a.Approve(t.Context(), nameOf(t, keys[0])); err != nil {
			t.Fatal(err)
		}
		if err := try(1000); core.AsFault(err).Code != core.CodeNotAuthorized {
			t.Errorf("once one was decided: got %v, want it to wait", err)
		}
		stored := func() (n int) {
			if err := log.Replay(t.Context(), func(time.Time, []byte) bool { n++; return true }); err != nil {
				t.Fatal(err)
			}
			return n
		}
		before := stored()
		late := newEd25519(t)
		keys = slices.Insert(keys, len(keys), late)
		for range 100 {
			if err := try(1001); core.AsFault(err).Code != core.CodeUnauthenticated || !strings.Contains(err.Error(), "wait for approval already") {
				t.Fatalf("within the hour: got %v, want it refused", err)
			}
		}
		if n := stored(); n != before {
			t.Errorf("got %d records of refused keys, want none", n-before)
		}
		time.Sleep(time.Hour)
		for range 2 {
			if err := try(1001); core.AsFault(err).Code != core.CodeNotAuthorized {
				t.Errorf("after an hour: got %v, want it to wait", err)
			}
		}
		check := func(a *auth.Authenticator) {
			t.Helper()
			waiting, names := 0, map[string]core.PrincipalStatus{}
			for _, p := range a.Principals() {
				names[p.Principal] = p.Status
				if p.Status == core.PrincipalPending {
					waiting++
				}
			}
			if _, there := names[nameOf(t, keys[1])]; there || waiting != 1000 {
				t.Errorf("got %d keys that wait, with the oldest: %t; want 1000 without it", waiting, there)
			}
			if names[nameOf(t, late)] != core.PrincipalPending || names[nameOf(t, keys[0])] != core.PrincipalApproved {
				t.Errorf("got the late key %v and the approved one %v, want both kept", names[nameOf(t, late)], names[nameOf(t, keys[0])])
			}
		}
		check(a)
		check(newAuth(t, auth.Options{Registered: log}, registering(auth.RegistrationDisabled))) // after a restart
	})
}

func TestAFloodOfPendingOrBadSignaturesKeepsNobodyOut(t *testing.T) {
	ann, eve := newEd25519(t), newEd25519(t)
	s := registering(auth.RegistrationPending)
	s.Keys = []auth.Key{ann.key(t, ana)}
	a := newAuth(t, auth.Options{}, s)
	given := signed(eve.sign(t, time.Now(), nonce()))
	bad := signed(ann.sign(t, time.Now(), nonce()))
	bad.SSH.Nonce = []string{"other"}
	for range 2000 {
		_, _ = a.Authenticate(t.Context(), given)
		_, _ = a.Authenticate(t.Context(), bad)
	}
	admits(t, a, signed(ann.sign(t, time.Now(), "other")), "ana") // the nonce of a bad signature is not kept
}
