package auth

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// The maximum numbers of registered keys, and of those of them that wait for an operator.
// Anybody who reaches the hub can make keys, so that a flood of them fills the list of those that
// wait. A key that has waited for pendingTime makes room for another, and may register again: the
// flood costs 1,000 records in that time, and keeps others out no longer.
const (
	maxRegistered = 10_000
	maxPending    = 1_000
	pendingTime   = time.Hour
)

// registered is a key that registered itself. It is also the record of a change of it.
type registered struct {
	Fingerprint string               `json:"fingerprint"`
	Principal   string               `json:"principal"`
	Status      core.PrincipalStatus `json:"status"`
	Since       time.Time            `json:"since"` // when it registered
	// Changes is how often it was changed, where there are other hubs: the record with more holds.
	Changes uint64 `json:"changes,omitempty"`
}

// owner returns the principal of a sender with the key. It may only register agents with its
// own name.
func (r registered) owner() core.Principal {
	return core.Principal{ID: r.Principal, Authenticated: true, Proof: proofSSH + r.Fingerprint}
}

// registry has the keys that registered themselves. A change is stored before it holds.
type registry struct {
	log     core.RecordLog // nil keeps nothing
	agreed  Agreed         // nil for a hub alone
	writing chan struct{}  // has a value while a change is being made

	mu      sync.RWMutex
	keys    map[Fingerprint]registered
	names   map[string]Fingerprint
	pending int
	waiting fifo.Queue[Fingerprint] // the keys that wait, the longest waiting first, and some that do so no longer
}

// openRegistry reads the registered keys; later records replace earlier ones.
func openRegistry(ctx context.Context, log core.RecordLog, agreed Agreed) (*registry, error) {
	r := &registry{log: log, agreed: agreed, writing: make(chan struct{}, 1), keys: map[Fingerprint]registered{}, names: map[string]Fingerprint{}}
	if log == nil {
		return r, nil
	}
	var bad error
	err := log.Replay(ctx, func(_ time.Time, record []byte) bool {
		var one registered
		if bad = readRegistered(record, &one); bad == nil {
			r.keep(one)
		}
		return bad == nil
	})
	if err = errors.Join(err, bad); err != nil {
		return nil, fmt.Errorf("reading the registered principals: %w", err)
	}
	return r, nil
}

// readRegistered reads a record.
func readRegistered(record []byte, one *registered) error {
	if err := strictjson.Decode(record, strictjson.Limits{}, one); err != nil {
		return err
	}
	if b, err := hex.DecodeString(one.Fingerprint); err != nil || len(b) != len(Fingerprint{}) || one.Principal == "" || one.Status == 0 {
		return errors.New("a record lacks a fingerprint, a principal or a status")
	}
	return nil
}

// keep makes a change hold. A key that begins to wait beyond maxPending takes the place of the one
// that has waited longest.
func (r *registry) keep(one registered) {
	b, _ := hex.DecodeString(one.Fingerprint) // it has been checked
	key := Fingerprint(b)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys[key].Status == core.PrincipalPending {
		r.pending--
	}
	r.keys[key], r.names[one.Principal] = one, key
	if one.Status != core.PrincipalPending {
		return
	}
	r.pending++
	r.waiting.Push(key)
	if r.pending > maxPending {
		oldest, _ := r.oldest()
		r.pending--
		delete(r.names, r.keys[oldest].Principal)
		delete(r.keys, oldest)
	}
}

// oldest returns the key that has waited longest. Callers hold mu.
func (r *registry) oldest() (key Fingerprint, waits bool) {
	for r.waiting.Len() > 0 {
		if key = r.waiting.First(); r.keys[key].Status == core.PrincipalPending {
			return key, true
		}
		r.waiting.Pop() // it was decided
	}
	return key, false
}

func (r *registry) get(key Fingerprint) (registered, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	one, known := r.keys[key]
	return one, known
}

func (r *registry) has(key Fingerprint) bool {
	_, known := r.get(key)
	return known
}

func (r *registry) named(name string) (registered, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	key, known := r.names[name]
	return r.keys[key], known
}

func (r *registry) all() []registered {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := make([]registered, 0, len(r.keys))
	for _, one := range r.keys {
		all = append(all, one)
	}
	return all
}

// change lets one caller at a time make a change: decide returns the new state of a key, which
// is stored and then holds. Readers do not wait for it.
func (r *registry) change(ctx context.Context, decide func() (one registered, change bool, err error)) (registered, error) {
	select {
	case r.writing <- struct{}{}:
	case <-ctx.Done():
		return registered{}, core.AsFault(ctx.Err())
	}
	defer func() { <-r.writing }()
	one, change, err := decide()
	if err != nil || !change {
		return one, err
	}
	if r.log != nil {
		if err := r.log.Append(ctx, strictjson.Encode(one)); err != nil {
			return registered{}, later("the principal could not be stored: try again").Because(err)
		}
	}
	r.keep(one)
	return one, nil
}

// register makes a principal for an unknown key. isTaken reports whether a name is in use
// elsewhere.
func (r *registry) register(ctx context.Context, key Fingerprint, status core.PrincipalStatus, isTaken func(string) bool) (registered, error) {
	ctx, cancel := context.WithTimeout(ctx, agreeTime)
	defer cancel()
	return r.change(ctx, func() (registered, bool, error) {
		if one, known := r.get(key); known { // by another call meanwhile
			return one, false, nil
		}
		if err := r.takes(status); err != nil {
			return registered{}, false, err
		}
		one := registered{Fingerprint: key.String(), Status: status, Since: time.Now().UTC().Truncate(time.Second)}
		for _, one.Principal = range r.freeNames(key, isTaken) {
			if r.agreed == nil {
				return one, true, nil
			}
			agreed, _, err := r.enter(ctx, one)
			if !errors.Is(err, errNameTaken) {
				return agreed, err == nil, err
			}
		}
		return registered{}, false, refused("unknown public key: its name is taken")
	})
}

// takes returns a Fault if there is no room for another key.
func (r *registry) takes(status core.PrincipalStatus) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case len(r.keys) >= maxRegistered:
		return later("unknown public key: the hub has %d registered keys and takes no more: ask an operator to add yours to auth.ssh_keys", maxRegistered)
	case status == core.PrincipalPending && !r.hasRoom():
		return later("unknown public key: %d keys wait for approval already: ask an operator to decide on them", maxPending)
	}
	return nil
}

// hasRoom reports whether one more key may wait. Callers hold mu for writing.
func (r *registry) hasRoom() bool {
	oldest, waits := r.oldest()
	return !waits || r.pending < maxPending || time.Since(r.keys[oldest].Since) >= pendingTime
}

// freeNames returns the names that a new key may have, the best first: as at Coven "agent-" and the
// last 8 digits of its fingerprint. It takes more digits where another key has that name, since a key
// whose last digits are given can be found.
func (r *registry) freeNames(key Fingerprint, isTaken func(string) bool) (all []string) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for digits := 8; digits <= 2*len(key); digits *= 2 {
		name := "agent-" + key.String()[2*len(key)-digits:]
		if _, used := r.names[name]; !used && !isTaken(name) {
			all = append(all, name)
		}
	}
	return all
}

// set changes the status of a principal.
func (r *registry) set(ctx context.Context, name string, status core.PrincipalStatus) error {
	ctx, cancel := context.WithTimeout(ctx, agreeTime)
	defer cancel()
	_, err := r.change(ctx, func() (registered, bool, error) {
		one, known := r.named(name)
		if !known {
			return one, false, core.NewFault(core.CodeInvalid, "no SSH key with the principal %q registered: dragoman principals list names those that did", shortened(name))
		}
		if r.agreed != nil {
			one, err := r.agree(ctx, one, status)
			return one, err == nil, err
		}
		changed := one.Status != status
		one.Status = status
		return one, changed, nil
	})
	return err
}

// shortened returns a name for an error.
func shortened(name string) string {
	const most = 64
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "…"
	}
	return name
}
