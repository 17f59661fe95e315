package hub

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/dedup"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/lru"
)

// Repeatable is a request that its sender may send again, at any hub of the cluster.
type Repeatable struct {
	// Owner is the id of the principal of the sender, and Name the key that the sender gave the
	// request: another owner may use the same.
	Owner, Name string
	// Content is a digest of the request. Another request with the same key has another one.
	Content [sha256.Size]byte
}

// KeysOptions bound [Keys].
type KeysOptions = dedup.Options

// ErrOtherContent is wrapped by the Fault of a request whose key another request has.
var ErrOtherContent = errors.New("the key belongs to another request")

// digest is a part of a SHA-256.
type digest [16]byte

// Keys know which requests of a dialect were acted on, so that one that is sent again opens no second
// task: neither here nor at another hub of the cluster. Keys are safe for concurrent use.
type Keys struct {
	hub   *Hub
	scope string

	mu      sync.Mutex
	known   *dedup.Keys[digest, digest, core.TaskID] // by owner and key: the content, and the task
	working map[digest]chan struct{}                 // the keys of requests that are acted on here; closed after that
	claims  *lru.Cache[digest, *claim]               // of this hub and others
}

// NewKeys returns the Keys of a dialect. It is called once for each.
func (h *Hub) NewKeys(dialect string, o KeysOptions) *Keys {
	k := &Keys{
		hub: h, scope: dialect, working: map[digest]chan struct{}{},
		known:  dedup.New[digest, digest, core.TaskID](o),
		claims: lru.New(lru.Options[digest, *claim]{Count: o.All, Age: o.Age, Owner: func(_ digest, c *claim) string { return c.owner }}),
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keys == nil {
		h.keys = map[string]*Keys{}
	}
	h.keys[dialect] = k
	for _, r := range h.recoveredKeys[dialect] {
		if begun, ok := r.task.Begun(); !ok || o.Age <= 0 || time.Since(begun) < o.Age {
			k.note(r.owner, r.mark, r.task)
		}
	}
	delete(h.recoveredKeys, dialect)
	return k
}

// recoveredKey is a request that a task in the journal was opened for.
type recoveredKey struct {
	owner string
	mark  mark
	task  core.TaskID
}

// recoverKey notes the request of a task in the journal, for the Keys of its dialect.
func (h *Hub) recoverKey(head journal.Head) {
	m, ok := parseMark(head.Key)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.recoveredKeys == nil {
		h.recoveredKeys = map[string][]recoveredKey{}
	}
	h.recoveredKeys[m.scope] = append(h.recoveredKeys[m.scope], recoveredKey{head.From, m, head.Task})
}

// Once acts on a request, unless one with its key was acted on before: then it returns the task of
// that, and known. act opens a task with [OpenOptions.Key], or does something to one, and returns it;
// it does not wait. After an error of act the key is free again. Where there are other hubs, Once asks
// them first.
//
// It returns a Fault that wraps ErrOtherContent, and a retryable one while another hub is acting on
// the request, or does not say whether it has done so.
func (k *Keys) Once(ctx context.Context, r Repeatable, act func(key string) (core.TaskID, error)) (id core.TaskID, known bool, err error) {
	m := k.mark(r)
	for {
		k.mu.Lock()
		before, verdict := k.known.Find(r.Owner, m.key, m.content)
		busy := k.working[m.key]
		if verdict == dedup.Settled && k.hub.mayBeLost(before) {
			verdict = dedup.Fresh
		}
		if verdict == dedup.Fresh && busy == nil {
			busy = make(chan struct{})
			k.working[m.key] = busy
			k.mu.Unlock()
			break
		}
		k.mu.Unlock()
		switch verdict {
		case dedup.Settled:
			return before, true, nil
		case dedup.Conflict:
			return "", false, otherContent()
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return "", false, core.AsFault(context.Cause(ctx))
		}
	}
	defer k.done(m.key)
	if k.hub.Clustered() {
		id, err = k.claim(ctx, r.Owner, m)
	}
	if known = id != ""; err == nil && !known {
		if id, err = act(m.String()); err != nil {
			id = ""
			k.forget(r.Owner, m)
		}
	}
	k.finish(r.Owner, m, id)
	return id, known && err == nil, err
}

func otherContent() error {
	return core.NewFault(core.CodeConflict, "the key was used for another request: choose a new one for each").Because(ErrOtherContent)
}

// done lets others that wait for a key go on.
func (k *Keys) done(key digest) {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.working[key])
	delete(k.working, key)
}

// note notes the task of a request.
func (k *Keys) note(owner string, m mark, id core.TaskID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keep(owner, m, id)
}

// keep is note. Callers hold mu.
func (k *Keys) keep(owner string, m mark, id core.TaskID) {
	if _, verdict := k.known.Begin(owner, m.key, m.content, ""); verdict == dedup.Fresh {
		k.known.Settle(owner, m.key, id)
	}
	k.claims.Remove(m.key)
}

// forget forgets a task that was refused after it was noted.
func (k *Keys) forget(owner string, m mark) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known.Forget(owner, m.key)
}

// mark is a request at all hubs: a digest of its dialect, its owner and its key, and one of its
// content.
type mark struct {
	scope        string
	key, content digest
}

func (k *Keys) mark(r Repeatable) mark {
	sum := sha256.Sum256([]byte(k.scope + "\x00" + r.Owner + "\x00" + r.Name))
	return mark{k.scope, digest(sum[:]), digest(r.Content[:])}
}

// String returns the form that stands in the first event of a task.
func (m mark) String() string {
	return m.scope + ":" + base64.RawURLEncoding.EncodeToString(append(m.key[:], m.content[:]...))
}

func parseMark(text string) (m mark, ok bool) {
	scope, rest, _ := strings.Cut(text, ":")
	b, err := base64.RawURLEncoding.DecodeString(rest)
	if err != nil || len(b) != len(m.key)+len(m.content) {
		return m, false
	}
	return mark{scope, digest(b), digest(b[len(m.key):])}, true
}

// noteKey notes a task that has a key and was opened here or is owned by this hub. Callers hold mu.
func (h *Hub) noteKey(owner, key string, id core.TaskID) {
	if m, ok := parseMark(key); ok && h.keys[m.scope] != nil {
		h.keys[m.scope].note(owner, m, id)
	}
}
