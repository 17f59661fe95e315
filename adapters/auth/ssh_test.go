package auth_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/core"
)

// client is a client of Coven with an SSH key.
type client struct {
	ssh.Signer
	line string // of authorized_keys
}

func newClient(t testing.TB, key crypto.Signer) client {
	t.Helper()
	s, err := ssh.NewSignerFromSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	return client{s, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.PublicKey())))}
}

func newEd25519(t testing.TB) client {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, key)
}

func newECDSA(t testing.TB, curve elliptic.Curve) client {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, key)
}

func newRSA(t testing.TB, bits int) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign returns the fields that the client sends, as coven-ssh makes them.
func (c client) sign(t testing.TB, at time.Time, nonce string) auth.SSHFields {
	t.Helper()
	return c.signAs(t, at, nonce, "")
}

// signAs signs with an algorithm; "" is that of the key.
func (c client) signAs(t testing.TB, at time.Time, nonce, algorithm string) auth.SSHFields {
	t.Helper()
	timestamp := strconv.FormatInt(at.Unix(), 10)
	text := []byte(timestamp + "|" + nonce)
	var sig *ssh.Signature
	var err error
	if signer, is := c.Signer.(ssh.AlgorithmSigner); is && algorithm != "" {
		sig, err = signer.SignWithAlgorithm(rand.Reader, text, algorithm)
	} else {
		sig, err = c.Sign(rand.Reader, text)
	}
	if err != nil {
		t.Fatal(err)
	}
	encoded := base64.StdEncoding.EncodeToString(ssh.Marshal(*sig))
	return auth.SSHFields{Key: []string{c.line + " user@host"}, Signature: []string{encoded}, Timestamp: []string{timestamp}, Nonce: []string{nonce}}
}

// key returns the key of the client in the settings.
func (c client) key(t testing.TB, options string) auth.Key {
	t.Helper()
	keys, err := auth.ReadKeys([]byte(options + " " + c.line))
	if err != nil {
		t.Fatal(err)
	}
	return keys[0]
}

var nonces atomic.Int64

func nonce() string { return fmt.Sprintf("%032x", nonces.Add(1)) }

func signed(fields auth.SSHFields) auth.Credentials { return auth.Credentials{SSH: fields} }

const ana = `principal="ana"`

func TestASignatureOfCovensClientsIsTaken(t *testing.T) {
	key := newRSA(t, 2048)
	for name, c := range map[string]struct {
		client
		algorithm string
	}{
		"ed25519":     {newEd25519(t), ""},
		"ECDSA P-256": {newECDSA(t, elliptic.P256()), ""},
		"RSA SHA-256": {newClient(t, key), ssh.KeyAlgoRSASHA256},
		"RSA SHA-512": {newClient(t, key), ssh.KeyAlgoRSASHA512},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuth(t, auth.Options{}, auth.Settings{Keys: []auth.Key{c.key(t, `principal="ana",agents="team-*,shout",roles="dev",kind="agent"`)}})
			p := admits(t, a, signed(c.signAs(t, time.Now(), nonce(), c.algorithm)), "ana")
			if got := p.Credential; got == nil || got.Kind != core.KindAgent || !slices.Equal(got.Agents, []string{"team-*", "shout"}) || !slices.Equal(got.Roles, []string{"dev"}) {
				t.Errorf("got %+v, want the kind, agents and roles of the line", got)
			}
		})
	}
}

func TestAFieldOfASignatureIsMissingDoubledOrWrong(t *testing.T) {
	ann, other := newEd25519(t), newEd25519(t)
	a := newAuth(t, auth.Options{Signatures: &taken{}}, auth.Settings{Keys: []auth.Key{ann.key(t, ana), other.key(t, `principal="bob"`)}})
	set := func(f *auth.SSHFields, name string, values ...string) {
		*map[string]*[]string{"key": &f.Key, "signature": &f.Signature, "timestamp": &f.Timestamp, "nonce": &f.Nonce}[name] = values
	}
	for field, word := range map[string]string{"key": "public key", "signature": "signature", "timestamp": "timestamp", "nonce": "nonce"} {
		fields := ann.sign(t, time.Now(), nonce())
		set(&fields, field)
		refuses(t, a, signed(fields), core.CodeUnauthenticated, "missing SSH "+word)
		set(&fields, field, " ")
		refuses(t, a, signed(fields), core.CodeUnauthenticated, "missing SSH "+word)
		fields = ann.sign(t, time.Now(), nonce())
		value := *map[string]*[]string{"key": &fields.Key, "signature": &fields.Signature, "timestamp": &fields.Timestamp, "nonce": &fields.Nonce}[field]
		set(&fields, field, value[0], value[0])
		refuses(t, a, signed(fields), core.CodeUnauthenticated, "SSH auth failed: the "+word+" is given 2 times")
		set(&fields, field, strings.Repeat("9", 5000))
		refuses(t, a, signed(fields), core.CodeUnauthenticated, "SSH auth failed: the "+word+" is longer than")
	}
	foreign := other.sign(t, time.Now(), nonce())
	badBlob := base64.StdEncoding.EncodeToString(ssh.Marshal(ssh.Signature{Format: ssh.KeyAlgoED25519, Blob: make([]byte, 64)}))
	noBlob := base64.StdEncoding.EncodeToString(ssh.Marshal(ssh.Signature{Format: ssh.KeyAlgoED25519}))
	otherFormat := base64.StdEncoding.EncodeToString(ssh.Marshal(ssh.Signature{Format: ssh.KeyAlgoRSASHA256, Blob: make([]byte, 64)}))
	for _, c := range []struct{ field, value, want string }{
		{"key", "nonsense", "invalid public key"},
		{"key", "ssh-ed25519 AAAB", "invalid public key"},
		{"key", other.line, "signature verification failed"},
		{"timestamp", "soon", "invalid timestamp"},
		{"timestamp", "1e9", "invalid timestamp"},
		{"timestamp", strconv.FormatInt(time.Now().Unix()-1, 10), "signature verification failed"},
		{"timestamp", "9223372036854775807", "timestamp is in the future"},
		{"timestamp", "-9223372036854775808", "signature expired"},
		{"nonce", "another", "signature verification failed"},
		{"signature", "***", "invalid signature encoding"},
		{"signature", "AAAA", "invalid signature format"},
		{"signature", badBlob, "signature verification failed"},
		{"signature", noBlob, "signature verification failed"},
		{"signature", otherFormat, "signature verification failed"},
		{"signature", foreign.Signature[0], "signature verification failed"},
	} {
		fields := ann.sign(t, time.Now(), nonce())
		set(&fields, c.field, c.value)
		refuses(t, a, signed(fields), core.CodeUnauthenticated, "SSH auth failed: "+c.want)
	}
	admits(t, a, signed(ann.sign(t, time.Now(), nonce())), "ana")
}

func TestASignatureIsValidForFiveMinutesAndOneAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ann := newEd25519(t)
		a := newAuth(t, auth.Options{Signatures: &taken{}}, auth.Settings{Keys: []auth.Key{ann.key(t, ana)}})
		for _, c := range []struct {
			age  time.Duration
			want string
		}{
			{0, ""}, {300 * time.Second, ""}, {-60 * time.Second, ""},
			{301 * time.Second, "SSH auth failed: signature expired"}, {-61 * time.Second, "SSH auth failed: timestamp is in the future"},
		} {
			given := signed(ann.sign(t, time.Now().Add(-c.age), nonce()))
			if c.want == "" {
				admits(t, a, given, "ana")
			} else {
				refuses(t, a, given, core.CodeUnauthenticated, c.want)
			}
		}
	})
}

func TestANonceIsTakenOnceWhileItsSignatureIsValid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ann, bob := newEd25519(t), newEd25519(t)
		a := newAuth(t, auth.Options{}, auth.Settings{Keys: []auth.Key{ann.key(t, ana), bob.key(t, `principal="bob"`)}})
		start, n := time.Now(), nonce()
		given := signed(ann.sign(t, start.Add(time.Minute), n))
		admits(t, a, given, "ana")
		admits(t, a, signed(bob.sign(t, start.Add(time.Minute), n)), "bob")
		admits(t, a, signed(ann.sign(t, start, n)), "ana") // another timestamp
		for time.Since(start) <= 6*time.Minute {
			refuses(t, a, given, core.CodeUnauthenticated, "SSH auth failed: nonce already used (possible replay attack)")
			admits(t, a, signed(bob.sign(t, time.Now(), nonce())), "bob") // which makes the hub forget what is old
			time.Sleep(10 * time.Second)
		}
		refuses(t, a, given, core.CodeUnauthenticated, "SSH auth failed: signature expired")
	})
}

// taken takes each name once, as the store of a cluster does.
type taken struct {
	mu    sync.Mutex
	names map[string]bool
	fails error
}

func (s *taken) Take(_ context.Context, name string) (first bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names == nil {
		s.names = map[string]bool{}
	}
	first = !s.names[name]
	s.names[name] = true
	return first, s.fails
}

func TestASignatureIsTakenOnceByAllHubsAndAllTheirLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ann, bob, all := newEd25519(t), newEd25519(t), &taken{}
		hub := func() *auth.Authenticator {
			return newAuth(t, auth.Options{Signatures: all}, auth.Settings{Keys: []auth.Key{ann.key(t, ana), bob.key(t, `principal="bob"`)}})
		}
		n := nonce()
		given, wrong := signed(ann.sign(t, time.Now(), n)), signed(ann.sign(t, time.Now(), nonce()))
		wrong.SSH.Nonce = []string{n + "x"}
		refuses(t, hub(), wrong, core.CodeUnauthenticated, "signature verification failed") // and takes nothing
		admits(t, hub(), given, "ana")
		time.Sleep(time.Second)
		refuses(t, hub(), given, core.CodeUnauthenticated, "nonce already used (possible replay attack)")
		admits(t, hub(), signed(bob.sign(t, time.Now(), n)), "bob") // another key
		admits(t, hub(), signed(ann.sign(t, time.Now(), n)), "ana") // another timestamp
		all.fails = errors.New("the disk is full")
		if f := refuses(t, hub(), signed(ann.sign(t, time.Now(), nonce())), core.CodeUnauthenticated, "cannot store that the signature was used: sign again"); !f.Retryable {
			t.Errorf("got %+v, want it retryable", f)
		}
	})
}

func TestAHubThatKeepsNothingTakesNoSignatureFromBeforeItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ann := newEd25519(t)
		before := signed(ann.sign(t, time.Now(), nonce()))
		time.Sleep(2 * time.Second)
		a := newAuth(t, auth.Options{}, auth.Settings{Keys: []auth.Key{ann.key(t, ana)}})
		if f := refuses(t, a, before, core.CodeUnauthenticated, "from before the start of this hub, which keeps none: sign again"); !f.Retryable {
			t.Errorf("got %+v, want it retryable", f)
		}
		admits(t, a, signed(ann.sign(t, time.Now(), nonce())), "ana")
	})
}

func TestOneOfManyConcurrentReplaysIsTaken(t *testing.T) {
	ann := newEd25519(t)
	a := newAuth(t, auth.Options{}, auth.Settings{Keys: []auth.Key{ann.key(t, ana)}})
	given := signed(ann.sign(t, time.Now(), nonce()))
	var admitted atomic.Int64
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if _, err := a.Authenticate(t.Context(), given); err == nil {
				admitted.Add(1)
			}
		})
	}
	if all.Wait(); admitted.Load() != 1 {
		t.Errorf("got %d admitted, want 1", admitted.Load())
	}
}

func TestWeakOrSlowKeysAreRefused(t *testing.T) {
	small, large, weak := newClient(t, newRSA(t, 2048)), newECDSA(t, elliptic.P384()), newClient(t, newRSA(t, 1024))
	a := newAuth(t, auth.Options{}, auth.Settings{Keys: []auth.Key{small.key(t, ana)}, Registration: auth.RegistrationApproved})
	refuses(t, a, signed(small.signAs(t, time.Now(), nonce(), ssh.KeyAlgoRSA)), core.CodeUnauthenticated, "SSH auth failed: the signature is RSA with SHA-1")
	for _, c := range []client{large, weak} {
		refuses(t, a, signed(c.signAs(t, time.Now(), nonce(), "")), core.CodeUnauthenticated, "the type or size of the public key is not supported: use ed25519")
	}
	slow := newClient(t, newRSA(t, 3072))
	refuses(t, a, signed(slow.signAs(t, time.Now(), nonce(), ssh.KeyAlgoRSASHA256)), core.CodeUnauthenticated, "an unknown RSA key may have at most 2048 bits")
	a.Apply(auth.Settings{Keys: []auth.Key{slow.key(t, ana)}})
	admits(t, a, signed(slow.signAs(t, time.Now(), nonce(), ssh.KeyAlgoRSASHA256)), "ana")
}

func TestASignatureDecidesWhateverIsBesideIt(t *testing.T) {
	ann := newEd25519(t)
	s := tokens("bob")
	s.Keys = []auth.Key{ann.key(t, ana)}
	a := newAuth(t, auth.Options{}, s)
	for _, beside := range []string{"Bearer bob-token", "Bearer wrong"} {
		good := signed(ann.sign(t, time.Now(), nonce()))
		good.Authorization = []string{beside}
		admits(t, a, good, "ana")
		bad := signed(ann.sign(t, time.Now(), nonce()))
		bad.SSH.Nonce = []string{"other"}
		bad.Authorization = []string{beside}
		refuses(t, a, bad, core.CodeUnauthenticated, "SSH auth failed")
		one := auth.Credentials{SSH: auth.SSHFields{Nonce: []string{"n"}}, Authorization: []string{beside}}
		refuses(t, a, one, core.CodeUnauthenticated, "missing SSH public key")
	}
	admits(t, a, auth.Credentials{SSH: auth.SSHFields{Nonce: []string{""}}, Authorization: []string{"Bearer bob-token"}}, "bob") // as at Coven
}

func TestAKeyIsKnownUntilItsLineChanges(t *testing.T) {
	ann := newEd25519(t)
	with := func(options string) auth.Settings {
		s := tokens("bob")
		s.Keys = []auth.Key{ann.key(t, options)}
		return s
	}
	a := newAuth(t, auth.Options{}, with(`principal="ana",agents="x"`))
	p := admits(t, a, signed(ann.sign(t, time.Now(), nonce())), "ana")
	for name, s := range map[string]auth.Settings{
		"no line": tokens("bob"), "another principal": with(`principal="eve",agents="x"`), "another agent": with(`principal="ana",agents="y"`),
		"a role": with(`principal="ana",agents="x",roles="r"`),
	} {
		if a.Apply(s); a.Knows(p) {
			t.Errorf("%s: got known, want not", name)
		}
	}
	if a.Apply(with(`principal="ana",agents="x"`)); !a.Knows(p) {
		t.Error("the same line again: got unknown, want known")
	}
}
