package auth

import (
	"context"
	"errors"
	"fmt"
	"github.com/dragoman-hub/dragoman/core/edge"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// The limits of fetching a key set.
const (
	maxKeySetBytes = 1 << 20
	fetchTime      = 5 * time.Second
	maxRedirects   = 3
	// refreshAfter is the minimum time between two fetches once there are keys, firstAfter
	// before.
	refreshAfter = time.Minute
	firstAfter   = 5 * time.Second
	// keySetAge is how old a key set may be before it is fetched again in the background, so
	// that a key that the issuer withdrew is not valid for ever.
	keySetAge = time.Hour
)

// errUnknownKey is the error of a token whose key is not in the set.
var errUnknownKey = errors.New("the key is not in the key set")

// issuers makes issuers of settings, and owns the fetches of their key sets.
type issuers struct {
	client   *http.Client
	log      *slog.Logger
	ctx      context.Context //nolint:containedctx // the life of the fetches, which no caller owns
	stop     context.CancelFunc
	fetches  sync.WaitGroup
	versions int
	current  map[string]*issuer
}

func (all *issuers) init(transport http.RoundTripper, log *slog.Logger) {
	all.client = &http.Client{Transport: transport, Timeout: fetchTime, CheckRedirect: sameHost}
	all.log = log
	all.ctx, all.stop = context.WithCancel(context.Background())
}

// close ends the fetches and waits for them.
func (all *issuers) close() {
	all.stop()
	all.fetches.Wait()
}

// apply returns the issuers of the settings by their names. Those whose settings are the same
// stay, and their key sets are fetched again at the next use. One whose settings are unsafe is
// left out.
func (all *issuers) apply(settings []Issuer) map[string]*issuer {
	next := map[string]*issuer{}
	for _, of := range settings {
		if err := of.check(); err != nil {
			all.log.Error("an issuer of tokens is not used", "issuer", of.Issuer, "reason", err)
			continue
		}
		if old := all.current[of.Issuer]; old != nil && old.same(of) {
			if old.keys != nil {
				old.keys.expire()
			}
			next[of.Issuer] = old
			continue
		}
		all.versions++
		var keys *keySet
		if of.JWKS != "" {
			keys = &keySet{issuers: all, url: of.JWKS}
		}
		next[of.Issuer] = newIssuer(of, proofJWT+strconv.Itoa(all.versions), keys)
	}
	all.current = next
	return next
}

// keySet has the keys of one issuer. They are fetched when a token first needs them.
type keySet struct {
	issuers *issuers
	url     string

	mu       sync.Mutex
	keys     []publicKey   // nil before the first fetch that succeeded
	fetched  time.Time     // when that of keys began; zero if they are to be fetched again
	tried    time.Time     // when the last fetch began
	fetching chan struct{} // closed when the running fetch ends; nil if none runs
}

// key returns the key with an id, or the only one for "". It waits for a fetch if the key is
// unknown, but not if keys are only old.
func (s *keySet) key(ctx context.Context, id string) (publicKey, error) {
	s.mu.Lock()
	key, err := s.find(id)
	if now := time.Now(); (err != nil || now.Sub(s.fetched) > keySetAge) && s.fetching == nil && s.mayFetch(now) {
		s.fetch(now)
	}
	running := s.fetching
	s.mu.Unlock()
	if err == nil || running == nil {
		return key, err
	}
	select {
	case <-running:
	case <-ctx.Done():
		return publicKey{}, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(id)
}

// find returns a known key. Callers hold mu.
func (s *keySet) find(id string) (publicKey, error) {
	if s.keys == nil {
		return publicKey{}, errLater
	}
	if id == "" && len(s.keys) == 1 {
		return s.keys[0], nil
	}
	for _, key := range s.keys {
		if id != "" && key.id == id {
			return key, nil
		}
	}
	return publicKey{}, errUnknownKey
}

// mayFetch reports whether the last fetch is long enough ago. Callers hold mu.
func (s *keySet) mayFetch(now time.Time) bool {
	wait := refreshAfter
	if s.keys == nil {
		wait = firstAfter
	}
	return s.issuers.ctx.Err() == nil && (s.tried.IsZero() || now.Sub(s.tried) >= wait)
}

// fetch starts a fetch, which no caller can cancel: otherwise one that leaves could keep others
// from new keys. Callers hold mu.
func (s *keySet) fetch(now time.Time) {
	s.tried, s.fetching = now, make(chan struct{})
	s.issuers.fetches.Go(func() {
		keys, err := s.load(s.issuers.ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil {
			s.keys, s.fetched = keys, now
		} else if s.issuers.ctx.Err() == nil {
			s.issuers.log.Warn("a key set could not be fetched; known keys stay valid", "url", redacted(s.url), "known", len(s.keys), "reason", err)
		}
		close(s.fetching)
		s.fetching = nil
	})
}

// expire makes the next use fetch the keys again.
func (s *keySet) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetched, s.tried = time.Time{}, time.Time{}
}

// load fetches and reads the key set. Its errors have no address, which may contain a secret.
func (s *keySet) load(ctx context.Context) ([]publicKey, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return nil, errors.New("its address cannot be read")
	}
	request.Close = true // the next fetch is at least a minute away
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	response, err := s.issuers.client.Do(request)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answered %d", response.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxKeySetBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxKeySetBytes:
		return nil, fmt.Errorf("it is longer than %d bytes", maxKeySetBytes)
	}
	if data, err = edge.Text(data); err != nil {
		return nil, err
	}
	return readKeySet(data)
}

// sameHost follows redirects at the same server only: the settings say who is trusted.
func sameHost(next *http.Request, via []*http.Request) error {
	first := via[0].URL
	if next.URL.Scheme != first.Scheme || next.URL.Host != first.Host || len(via) > maxRedirects {
		return errors.New("the server redirects elsewhere: set jwks to where the key set is")
	}
	return nil
}

// redacted returns an address for a log, without what may be secret in it.
func redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
