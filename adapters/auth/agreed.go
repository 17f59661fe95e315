package auth

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Where there are other hubs, they agree on which key has which name and whether it may connect: a
// store that all of them use has the record of each key, and each hub a copy.

// Agreed is what the hubs of a cluster agree on, as [cluster.Claims] has it.
//
// [cluster.Claims]: https://pkg.go.dev/github.com/dragoman-hub/dragoman/core/cluster#Claims
type Agreed interface {
	// Claim makes a value the holder of a name. If the name has another holder, it returns that
	// one, unless yields says that it no longer counts.
	Claim(ctx context.Context, name, value string, yields func(holder string) bool) (holder string, err error)
	// Holder returns the holder of a name, "" if it has none.
	Holder(ctx context.Context, name string) (string, error)
}

// errNameTaken says that another key has a name.
var errNameTaken = errors.New("another key has the name")

func agreedName(principal string) string { return "principal." + principal }

func agreedKey(fingerprint string) string { return "key." + fingerprint }

// agreeTime is how long the store may take.
const agreeTime = 10 * time.Second

// unsure returns the Fault of a hub that could not ask the store.
func unsure(err error) error {
	return later("the cluster could not be asked for the principal: try again").Because(err)
}

// enter makes a new record of a key that of all hubs, unless they have one, and returns what they have
// and its text. It returns errNameTaken if another key has the name.
func (r *registry) enter(ctx context.Context, one registered) (now registered, text string, err error) {
	if text, err = r.agreed.Holder(ctx, agreedKey(one.Fingerprint)); err != nil {
		return now, "", unsure(err)
	}
	if text == "" {
		holder, err := r.agreed.Claim(ctx, agreedName(one.Principal), one.Fingerprint, func(string) bool { return false })
		switch {
		case err != nil:
			return now, "", unsure(err)
		case holder != one.Fingerprint:
			return now, "", errNameTaken
		}
		text, err = r.agreed.Claim(ctx, agreedKey(one.Fingerprint), string(strictjson.Encode(one)), func(string) bool { return false })
		if err != nil {
			return now, "", unsure(err)
		}
	}
	if err := readRegistered([]byte(text), &now); err != nil {
		return now, "", unsure(err)
	}
	return now, text, nil
}

// agree gives a key a status at all hubs.
func (r *registry) agree(ctx context.Context, one registered, status core.PrincipalStatus) (registered, error) {
	now, text, err := r.enter(ctx, one)
	for err == nil && now.Status != status {
		now.Status = status
		now.Changes++
		before, next := text, string(strictjson.Encode(now))
		if text, err = r.agreed.Claim(ctx, agreedKey(one.Fingerprint), next, func(holder string) bool { return holder == before }); err != nil {
			return now, unsure(err)
		}
		if text != next { // another hub has changed it meanwhile
			now = registered{}
			err = readRegistered([]byte(text), &now)
		}
	}
	return now, err
}

func fingerprintIn(one registered) Fingerprint {
	b, _ := hex.DecodeString(one.Fingerprint) // it has been checked
	return Fingerprint(b)
}

// refresh returns the record of a key, which may have changed, or been made, at another hub. One that
// lets the key in is not asked for again: who revokes it tells all hubs.
func (r *registry) refresh(ctx context.Context, key Fingerprint) (one registered, known bool, err error) {
	one, known = r.get(key)
	if r.agreed == nil || known && one.Status == core.PrincipalApproved {
		return one, known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, agreeTime)
	defer cancel()
	text, err := r.agreed.Holder(ctx, agreedKey(key.String()))
	if err != nil {
		return one, known, unsure(err)
	}
	if text != "" {
		if err := r.learn(ctx, []byte(text)); err != nil {
			return one, known, err
		}
		one, known = r.get(key)
	}
	return one, known, nil
}

// refreshAll brings what this hub knows from before its start up to date, and the others what they do
// not know: a hub that was alone brings its keys along. One whose name another key has got since does
// not come in any more.
func (r *registry) refreshAll(ctx context.Context) error {
	for _, one := range r.all() {
		now, _, err := r.enter(ctx, one)
		switch {
		case errors.Is(err, errNameTaken):
			now = one
			now.Status = core.PrincipalRevoked
		case err != nil:
			return err
		}
		r.keep(now)
	}
	return nil
}

// learn takes a record of another hub, if it is newer than that of this one.
func (r *registry) learn(ctx context.Context, record []byte) error {
	var one registered
	if err := readRegistered(record, &one); err != nil {
		return core.NewFault(core.CodeInvalid, "the record of a principal: %s", err)
	}
	select {
	case r.writing <- struct{}{}:
	case <-ctx.Done():
		return core.AsFault(ctx.Err())
	}
	defer func() { <-r.writing }()
	if own, known := r.get(fingerprintIn(one)); known && own.Changes >= one.Changes {
		return nil
	}
	r.keep(one) // at once, since it may keep somebody out
	if r.log == nil {
		return nil
	}
	return r.log.Append(ctx, record)
}

// Learn takes records of another hub, as [Authenticator.Registered] returns them there.
func (a *Authenticator) Learn(ctx context.Context, records [][]byte) error {
	for _, record := range records {
		if err := a.registered.learn(ctx, record); err != nil {
			return err
		}
	}
	return nil
}

// mostRecords bounds a page of records.
const mostRecords = 1000

// Registered returns the records of the keys that registered, in the order of their fingerprints, for
// other hubs: a page of those after a fingerprint, and the fingerprint of the next page; "" at the end.
func (a *Authenticator) Registered(after string) (records [][]byte, next string) {
	all := slices.DeleteFunc(a.registered.all(), func(one registered) bool { return one.Fingerprint <= after })
	slices.SortFunc(all, func(x, y registered) int { return cmp.Compare(x.Fingerprint, y.Fingerprint) })
	if len(all) > mostRecords {
		all = all[:mostRecords]
		next = all[mostRecords-1].Fingerprint
	}
	for _, one := range all {
		records = append(records, strictjson.Encode(one))
	}
	return records, next
}

// Record returns the record of a principal that registered, for other hubs.
func (a *Authenticator) Record(principal string) (record []byte, known bool) {
	one, known := a.registered.named(principal)
	return strictjson.Encode(one), known
}
