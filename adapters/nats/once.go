package nats

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/dragoman-hub/dragoman/core"
)

// Once takes each name once, at whichever hub of the cluster and whatever restarts come between, and
// forgets it after a time. It is a key-value bucket, which is made with the first name. It ends with its
// Journal, and is safe for concurrent use.
type Once struct {
	j      *Journal
	bucket string
	what   string
	keep   time.Duration

	mu    sync.Mutex // held while the bucket is made
	names jetstream.KeyValue
}

// Once returns the names of a kind, such as "nonces", each kept for a time. what says for people what they
// are. A hub alone has names of its own.
func (j *Journal) Once(kind, what string, keep time.Duration) *Once {
	return &Once{j: j, bucket: j.shares + "-" + kind, what: what, keep: keep}
}

// Take reports whether a name is taken here and now, for the first time. It returns once that is stored;
// after an error the name may be taken.
func (o *Once) Take(ctx context.Context, name string) (first bool, err error) {
	o.j.reopening.RLock()
	defer o.j.reopening.RUnlock()
	names, err := o.open(ctx)
	if err != nil {
		return false, fmt.Errorf("making the bucket %s: %w", o.bucket, err)
	}
	key, own := keyOf(name), core.NewID()
	_, err = retry(ctx, o.j, o.j.silence(), func(ctx context.Context) (uint64, error) { return names.Create(ctx, key, []byte(own)) })
	if err == nil {
		return true, nil
	}
	if !errors.Is(err, jetstream.ErrKeyExists) {
		return false, fmt.Errorf("taking a name of the bucket %s: %w", o.bucket, err)
	}
	held, err := retry(ctx, o.j, o.j.replicaSilence(), func(ctx context.Context) (jetstream.KeyValueEntry, error) { return names.Get(ctx, key) })
	return err == nil && string(held.Value()) == own, nil // else a try before was stored and not acknowledged
}

// open returns the bucket, and makes it if it is missing.
func (o *Once) open(ctx context.Context) (jetstream.KeyValue, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.names != nil {
		return o.names, nil
	}
	err := o.j.Insist(ctx, func(ctx context.Context) (err error) {
		o.names, err = o.j.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: o.bucket, Description: o.what, TTL: o.keep, Replicas: o.j.replicas})
		return err
	})
	if err != nil {
		o.names = nil
	}
	return o.names, err
}
