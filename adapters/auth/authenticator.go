package auth

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// Options are what an Authenticator needs besides its settings. The zero Options keep
// registered keys in memory.
type Options struct {
	// Registered keeps what becomes of unknown SSH keys. Its records must not expire.
	Registered core.RecordLog
	// Signatures takes each signature once, at all hubs and beyond a restart; nil keeps them in memory
	// alone, and refuses those of before its start.
	Signatures Signatures
	// Agreed is where the hubs of a cluster agree on these keys; nil for a hub alone.
	Agreed Agreed
	// OnRegistered is called with the name of each principal that registers here; it may wait.
	OnRegistered func(ctx context.Context, principal string)
	// Transport fetches key sets; nil is that of net/http.
	Transport http.RoundTripper
	// Count increments a counter: auth.refused and its kind (certificate, ssh, token, jwt,
	// unix, missing).
	Count func(name string)
	Log   *slog.Logger
}

// Settings say which credentials are valid. The zero Settings are those of an open hub.
type Settings struct {
	Tokens []Token
	// Keys are the SSH keys of known principals, and Registration says what becomes of others.
	Keys         []Key
	Registration Registration
	Issuers      []Issuer
	// Authorities are the certificates that client certificates are verified with.
	Authorities []*x509.Certificate
	// Unix are the users that may connect over a Unix socket without another credential.
	Unix []UnixUser
	// Reserved are names that no credential may prove: those under which the hub runs agents and
	// packs itself.
	Reserved []string
}

// UnixUser is a user of this machine.
type UnixUser struct {
	UID       uint32
	Principal string
	Operator  bool
}

// Authenticator turns credentials into principals. All methods may be called concurrently.
type Authenticator struct {
	tokens     Tokens
	current    atomic.Pointer[state]
	registered *registry
	nonces     nonces // of the keys in the settings
	newNonces  nonces // of registered keys, which must not crowd out the others
	signatures Signatures
	since      time.Time // before which no signature is known; zero if all are
	issuers    issuers
	count      func(string)
	log        *slog.Logger

	onRegistered func(context.Context, string)
}

// state is what follows from the settings. It is never changed.
type state struct {
	open         bool
	registration Registration
	keys         map[Fingerprint]core.Principal
	issuers      map[string]*issuer // by the claim iss
	authorities  map[authority]bool
	unix         map[uint32]core.Principal
	reserved     map[string]bool
}

// authority is the SHA-256 of a certificate that others are verified with.
type authority [sha256.Size]byte

// New returns an Authenticator without settings, which is that of an open hub. It reads the
// registered keys. Close ends it.
func New(ctx context.Context, opts Options) (*Authenticator, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Count == nil {
		opts.Count = func(string) {}
	}
	if opts.OnRegistered == nil {
		opts.OnRegistered = func(context.Context, string) {}
	}
	registered, err := openRegistry(ctx, opts.Registered, opts.Agreed)
	if err != nil {
		return nil, err
	}
	a := &Authenticator{
		registered: registered, count: opts.Count, log: opts.Log, onRegistered: opts.OnRegistered, signatures: opts.Signatures,
		nonces: nonces{most: maxNonces, mostOfKey: maxNoncesOfKey}, newNonces: nonces{most: maxNewNonces, mostOfKey: maxNewNoncesOfKey},
	}
	if a.signatures == nil {
		a.since = time.Now()
	}
	if opts.Agreed != nil {
		refreshing, cancel := context.WithTimeout(ctx, agreeTime)
		defer cancel()
		if err := registered.refreshAll(refreshing); err != nil { // the other hubs tell
			opts.Log.Warn("the cluster does not tell of all registered principals", "error", err)
		}
	}
	a.issuers.init(opts.Transport, opts.Log)
	a.current.Store(&state{open: true})
	return a, nil
}

// Close ends the fetching of key sets and waits for it.
func (a *Authenticator) Close() { a.issuers.close() }

// Apply replaces the settings. Key sets of issuers that are in both are kept, and fetched
// again when they are used next. Only one goroutine may call it.
func (a *Authenticator) Apply(s Settings) {
	next := &state{
		registration: s.Registration, keys: map[Fingerprint]core.Principal{}, issuers: a.issuers.apply(s.Issuers),
		authorities: map[authority]bool{}, unix: map[uint32]core.Principal{}, reserved: map[string]bool{},
		open: len(s.Tokens)+len(s.Keys)+len(s.Issuers)+len(s.Authorities) == 0 && s.Registration == RegistrationDisabled,
	}
	for _, key := range s.Keys {
		next.keys[key.Fingerprint] = key.Owner()
	}
	for _, cert := range s.Authorities {
		next.authorities[sha256.Sum256(cert.Raw)] = true
	}
	for _, user := range s.Unix {
		next.unix[user.UID] = core.Principal{ID: user.Principal, Authenticated: true, Operator: user.Operator, Proof: unixProof(user.UID)}
	}
	for _, name := range s.Reserved {
		next.reserved[name] = true
	}
	a.tokens.Replace(s.Tokens)
	a.current.Store(next)
}

// Open reports whether no authentication is configured.
func (a *Authenticator) Open() bool { return a.current.Load().open }

// Tokens are the tokens of the hub.
func (a *Authenticator) Tokens() *Tokens { return &a.tokens }

// The prefixes of proofs. That of a token of the hub has none.
const (
	proofCertificate = "certificate:"
	proofSSH         = "ssh:"
	proofJWT         = "jwt:"
	proofUnix        = "unix:"
)

func unixProof(uid uint32) string { return proofUnix + strconv.FormatUint(uint64(uid), 10) }

// The kinds of credentials, in refusals.
const (
	kindCertificate = "certificate"
	kindSSH         = "ssh"
	kindToken       = "token"
	kindJWT         = "jwt"
	kindUnix        = "unix"
	kindMissing     = "missing"
)

// Authenticate returns the principal that the credentials prove. On an open hub it is the
// zero Principal, whatever they are. The error is a Fault that is unauthenticated or
// not_authorized, and retryable if the hub could not tell at present. It may wait for a key
// set, or until a new key is stored.
func (a *Authenticator) Authenticate(ctx context.Context, given Credentials) (core.Principal, error) {
	s := a.current.Load()
	if s.open {
		return core.Principal{}, nil
	}
	kind, p, err := a.judge(ctx, s, &given)
	switch {
	case err != nil:
	case core.IsHubs(p.ID):
		err = core.NewFault(core.CodeNotAuthorized, "the name %s is given by the hub itself: a credential needs another principal", p.ID)
	case s.reserved[p.ID]:
		err = core.NewFault(core.CodeNotAuthorized, "the hub runs an agent or a pack under the name %s itself: a credential needs another principal", p.ID)
	}
	if err != nil {
		a.count("auth.refused." + kind)
		return core.Principal{}, err
	}
	return p, nil
}

// judge returns the kind of the credential that decides, and its principal.
func (a *Authenticator) judge(ctx context.Context, s *state, given *Credentials) (kind string, p core.Principal, err error) {
	switch {
	case len(given.Certificates) > 0:
		p, err = s.certificate(given.Certificates)
		return kindCertificate, p, err
	case given.SSH.present():
		p, err = a.signature(ctx, s, given.SSH)
		return kindSSH, p, err
	}
	token, present, err := given.token()
	switch {
	case err != nil:
		return kindToken, p, err
	case present:
		return a.token(ctx, s, token)
	case given.Unix != nil:
		p, known := s.unix[given.Unix.UID]
		if !known {
			return kindUnix, p, refused("the user with the id %d may not use this socket: connect as the user that runs the hub, or with a token over WebSocket", given.Unix.UID)
		}
		return kindUnix, p, nil
	}
	return kindMissing, p, refused("a token is missing: send it as Authorization: Bearer")
}

// Knows reports whether the credential of a principal is still valid and says the same of it.
// On an open hub it knows those who proved nothing.
func (a *Authenticator) Knows(p core.Principal) bool {
	s := a.current.Load()
	if !p.Authenticated {
		return s.open
	}
	if !valid(p) || s.reserved[p.ID] || core.IsHubs(p.ID) {
		return false
	}
	kind, rest, found := strings.Cut(p.Proof, ":")
	if !found {
		return a.tokens.Knows(p)
	}
	switch kind + ":" {
	case proofCertificate:
		return s.knowsAuthority(rest)
	case proofSSH:
		owner, known := a.keyOwner(s, rest)
		return known && same(owner, p)
	case proofJWT:
		return s.knowsIssuer(rest)
	case proofUnix:
		uid, err := strconv.ParseUint(rest, 10, 32)
		return err == nil && same(s.unix[uint32(uid)], p)
	}
	return false
}

// refused returns an unauthenticated Fault.
func refused(format string, args ...any) *core.Fault {
	return core.NewFault(core.CodeUnauthenticated, format, args...)
}

// later returns an unauthenticated Fault after which the same credential may be right.
func later(format string, args ...any) *core.Fault {
	f := refused(format, args...)
	f.Retryable = true
	return f
}
