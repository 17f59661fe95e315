package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"
)

// The bounds of the memories of nonces. A client of Coven signs each call, so that the first
// bounds the calls with signatures in maxAge. A nonce takes about 40 bytes.
const (
	maxNonces         = 500_000
	maxNoncesOfKey    = 100_000
	maxNewNonces      = 100_000
	maxNewNoncesOfKey = 10_000
)

// SignatureTime is how long a signature may be used from when it is, with some time for clocks of hubs that
// differ.
const SignatureTime = maxAge + maxAhead + 2*time.Minute

// Signatures is where the hubs of a cluster, and the lives of a hub, take each signature once.
type Signatures interface {
	// Take reports whether a name is taken here and now, for the first time in SignatureTime.
	Take(ctx context.Context, name string) (first bool, err error)
}

// takeTime is how long that may take.
const takeTime = 5 * time.Second

// take takes a signature that nobody has used.
func (a *Authenticator) take(ctx context.Context, signed *signature) error {
	if a.signatures == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, takeTime)
	defer cancel()
	sum := sha256.Sum256(append(signed.fingerprint[:], signed.text()...))
	first, err := a.signatures.Take(ctx, hex.EncodeToString(sum[:len(nonceHash{})]))
	switch {
	case err != nil:
		return later("SSH auth failed: the hub cannot store that the signature was used: sign again").Because(err)
	case !first:
		return replay()
	}
	return nil
}

// nonces remembers the nonces of valid signatures as long as the signatures are valid. It
// forgets none before: when it is full it takes no more. Only nonces of verified signatures
// are put in, so that a flood of bad ones does not fill it.
type nonces struct {
	most, mostOfKey int

	mu      sync.Mutex
	seconds map[int64]*second // by timestamp
	swept   int64             // timestamps up to here are gone
	size    int
	sizes   map[Fingerprint]int // of each key
}

// second has the nonces that were signed with one timestamp.
type second struct {
	seen map[nonceHash]struct{}
	of   map[Fingerprint]int
}

// nonceHash is a part of the SHA-256 of a key's fingerprint and a nonce. A key can only find
// two nonces of its own with the same.
type nonceHash [16]byte

func hashNonce(key Fingerprint, nonce string) nonceHash {
	sum := sha256.Sum256(append(key[:], nonce...))
	return nonceHash(sum[:16])
}

// verdict says what nonces knows of a nonce.
type verdict int

const (
	fresh verdict = iota
	replayed
	full
)

// seen reports whether the nonce of the key at the timestamp is known, without keeping it.
func (n *nonces) seen(key Fingerprint, timestamp int64, nonce string) bool {
	hash := hashNonce(key, nonce)
	n.mu.Lock()
	defer n.mu.Unlock()
	at := n.seconds[timestamp]
	if at == nil {
		return false
	}
	_, seen := at.seen[hash]
	return seen
}

// add keeps a nonce, unless it is known or there is no room. timestamp is less than
// maxAge+maxAhead from now, which is in Unix seconds.
func (n *nonces) add(key Fingerprint, timestamp int64, nonce string, now int64) verdict {
	hash := hashNonce(key, nonce)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sweep(now - int64(maxAge/time.Second) - 1)
	if timestamp <= n.swept { // it expired meanwhile, and what was known of it is forgotten
		return replayed
	}
	at := n.seconds[timestamp]
	if at != nil {
		if _, seen := at.seen[hash]; seen {
			return replayed
		}
	}
	if n.size >= n.most || n.sizes[key] >= n.mostOfKey {
		return full
	}
	if n.seconds == nil {
		n.seconds, n.sizes = map[int64]*second{}, map[Fingerprint]int{}
	}
	if at == nil {
		at = &second{map[nonceHash]struct{}{}, map[Fingerprint]int{}}
		n.seconds[timestamp] = at
	}
	at.seen[hash] = struct{}{}
	at.of[key]++
	n.size++
	n.sizes[key]++
	return fresh
}

// sweep forgets the nonces with timestamps up to the given one: their signatures have expired.
// It is never more than the seconds that signatures are valid in. Callers hold mu.
func (n *nonces) sweep(upTo int64) {
	if upTo <= n.swept {
		return
	}
	n.swept = upTo
	for timestamp, at := range n.seconds {
		if timestamp > upTo {
			continue
		}
		delete(n.seconds, timestamp)
		n.size -= len(at.seen)
		for key, count := range at.of {
			if n.sizes[key] -= count; n.sizes[key] == 0 {
				delete(n.sizes, key)
			}
		}
	}
}
