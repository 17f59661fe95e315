package hub

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/dedup"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// Repeatable is a request that its sender may send again, at any hub of the cluster.
type Repeatable struct {
	// Owner is the id of the principal of the sender, and Name the key that the sender gave the
	// request: another owner may use the same.
	Owner, Name string
	// Content is a digest of the request. Another request with the same key has another one.
	Content [sha256.Size]byte
}

// KeysOptions bound [Keys] of a hub alone.
type KeysOptions = dedup.Options

// ErrOtherContent is wrapped by the Fault of a request whose key another request has.
var ErrOtherContent = errors.New("the key belongs to another request")

// digest is a part of a SHA-256.
type digest [16]byte

// Requests has the keys of requests for all hubs that work as one.
type Requests interface {
	// Begin begins a request with a key, a name that its mark has, unless one was acted on before: then it returns the
	// task of that. It waits for what may be acting on the same one, and returns a Fault that wraps ErrOtherContent for
	// another request with the key. note, which does not wait, notes the task of the request, "" for none, and calls
	// noted then, unless the hub stops before. It is called once, also after an error.
	Begin(ctx context.Context, key, mark string) (before core.TaskID, note func(id core.TaskID, noted func()), err error)
}

// Keys know which requests of a dialect were acted on, so that one that is sent again opens no second
// task: neither here nor at another hub of the cluster. Keys are safe for concurrent use.
type Keys struct {
	hub   *Hub
	scope string

	mu      sync.Mutex
	known   *dedup.Keys[digest, digest, core.TaskID] // of a hub alone, by owner and key: the content, and the task
	working map[digest]chan struct{}                 // the keys of requests that are acted on here; closed after that
}

// NewKeys returns the Keys of a dialect. It is called once for each.
func (h *Hub) NewKeys(dialect string, o KeysOptions) *Keys {
	k := &Keys{hub: h, scope: dialect, working: map[digest]chan struct{}{}, known: dedup.New[digest, digest, core.TaskID](o)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recoveredKeys = slices.DeleteFunc(h.recoveredKeys, func(head journal.Head) bool {
		m, ok := parseMark(head.Key)
		if !ok || m.scope != dialect {
			return !ok
		}
		if begun, ok := head.Task.Begun(); !ok || o.Age <= 0 || time.Since(begun) < o.Age {
			k.note(head.From, m, head.Task)
		}
		return true
	})
	return k
}

// keyTime is how long a request waits for what may be acting on the same one.
const keyTime = 5 * time.Second

// Once acts on a request, unless one with its key was acted on before: then it returns the task of
// that, and known. act opens a task with [OpenOptions.Key], or does something to one, and returns it;
// it does not wait. After an error of act the key is free again. With others, Once asks
// [Requests] first.
//
// It returns a Fault that wraps ErrOtherContent, and a retryable one while another hub is acting on
// the request, or nothing says whether one is.
func (k *Keys) Once(ctx context.Context, r Repeatable, act func(key string) (core.TaskID, error)) (id core.TaskID, known bool, err error) {
	late := core.NewFault(core.CodeUnreachable, "another hub is acting on the same request, or the hubs cannot agree on it now: send it again in a moment")
	late.Retryable = true
	ctx, cancel := context.WithTimeoutCause(ctx, keyTime, late)
	defer cancel()
	m := k.mark(r)
	if err := k.begin(ctx, m.key); err != nil {
		return "", false, late.Because(err)
	}
	note := func(_ core.TaskID, noted func()) { noted() }
	if k.hub.requests == nil {
		id, err = k.find(r.Owner, m)
	} else {
		id, note, err = k.hub.requests.Begin(ctx, base64.RawURLEncoding.EncodeToString(m.key[:]), m.String())
	}
	if f := (*core.Fault)(nil); err != nil && (ctx.Err() != nil || !errors.As(err, &f)) {
		err = late.Because(err)
	}
	if known = id != ""; err == nil && !known {
		if id, err = act(m.String()); err != nil {
			id = ""
		}
		k.note(r.Owner, m, id)
	}
	note(id, func() { k.done(m.key) }) // which may be after the answer to the requester
	return id, known, err
}

// begin waits until nothing here acts on a request with the key but the caller.
func (k *Keys) begin(ctx context.Context, key digest) error {
	for {
		k.mu.Lock()
		busy := k.working[key]
		if busy == nil {
			k.working[key] = make(chan struct{})
		}
		k.mu.Unlock()
		if busy == nil {
			return nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-k.hub.ctx.Done(): // what acts on it may never be noted
			return ErrStopping
		}
	}
}

// done lets others that wait for a key go on.
func (k *Keys) done(key digest) {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.working[key])
	delete(k.working, key)
}

// OtherContent returns the Fault of a request whose key another request has.
func OtherContent() error {
	return core.NewFault(core.CodeConflict, "the key was used for another request: choose a new one for each").Because(ErrOtherContent)
}

// find returns the task of a request that a hub alone knows; "" for none.
func (k *Keys) find(owner string, m mark) (core.TaskID, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	id, verdict := k.known.Find(owner, m.key, m.content)
	if verdict == dedup.Conflict {
		return "", OtherContent()
	}
	return id, nil
}

// note is for find: it notes the task of a request.
func (k *Keys) note(owner string, m mark, id core.TaskID) {
	if id == "" || k.hub.requests != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known.Begin(owner, m.key, m.content, "")
	k.known.Settle(owner, m.key, id)
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
