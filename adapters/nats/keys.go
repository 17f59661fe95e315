package nats

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Keys has the keys of requests for all hubs of a cluster, as the engine's KeyStore wants it, in a
// key-value bucket. It ends with its Journal.
type Keys struct {
	j      *Journal
	bucket jetstream.KeyValue
}

// Keys returns the keys of the cluster; nil without Options.Cluster.
func (j *Journal) Keys() *Keys { return j.keys }

// keysTime is how long the bucket has a key after the last write: as long as Coven, A2A and ACP say that
// a request which is sent again is known.
const keysTime = 5 * time.Minute

func (j *Journal) openKeys(ctx context.Context, cluster string) error {
	bucket := cluster + "-keys"
	keys, err := j.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: bucket, Description: "which requests of a Dragoman cluster have tasks", TTL: keysTime, Replicas: j.replicas,
	})
	if err != nil {
		return fmt.Errorf("making the bucket %s: %w", bucket, err)
	}
	j.keys = &Keys{j, keys}
	return nil
}

// Read returns an entry and its revision, as some replica has it; zeros if that has none.
func (k *Keys) Read(ctx context.Context, name string) (text string, revision uint64, err error) {
	e, err := retry(ctx, k.j, k.j.replicaSilence(), func(ctx context.Context) (jetstream.KeyValueEntry, error) { return k.bucket.Get(ctx, name) })
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, fmt.Errorf("reading the key of a request: %w", err)
	}
	return string(e.Value()), e.Revision(), nil
}

// Write writes an entry if its revision is that one, 0 if there is none, and returns the next revision;
// 0 if it is another one. What was stored and not acknowledged is tried again, and returns 0.
func (k *Keys) Write(ctx context.Context, name, text string, revision uint64) (next uint64, err error) {
	next, err = retry(ctx, k.j, k.j.silence(), func(ctx context.Context) (uint64, error) { return k.bucket.Update(ctx, name, []byte(text), revision) })
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) || errors.Is(err, jetstream.ErrKeyExists) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("writing the key of a request: %w", err)
	}
	return next, nil
}
