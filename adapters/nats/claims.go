package nats

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/timer"
)

// Claims is a cluster.Claims in a key-value bucket. It ends with its Journal.
type Claims struct {
	j     *Journal
	names jetstream.KeyValue

	mu   sync.Mutex
	held map[string]claim // by name: what this hub holds
}

// claim is a value that holds a name, and the revision with which it got it.
type claim struct {
	value    string
	revision uint64
}

var _ cluster.Claims = (*Claims)(nil)

// Claims returns the claims of the cluster; nil without Options.Cluster.
func (j *Journal) Claims() *Claims { return j.claims }

// releasedTime is how long the bucket remembers that a name was given back.
const releasedTime = time.Minute

func (j *Journal) openClaims(ctx context.Context, cluster string) error {
	bucket := cluster + "-claims"
	names, err := j.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: bucket, Description: "which hub of a Dragoman cluster has which name", LimitMarkerTTL: releasedTime, Replicas: j.replicas,
	})
	if err != nil {
		return fmt.Errorf("making the bucket %s: %w", bucket, err)
	}
	j.claims = &Claims{j: j, names: names, held: map[string]claim{}}
	return nil
}

// Claim implements cluster.Claims. A read may come from a replica that is behind, so each
// success is a write on the condition of what was read.
func (c *Claims) Claim(ctx context.Context, name, value string, yields func(holder string) bool) (string, error) {
	key := keyOf(name)
	for {
		revision, err := c.write(ctx, key, value, 0)
		if changed(err) {
			var held jetstream.KeyValueEntry
			if held, err = c.read(ctx, key); err == nil {
				holder := string(held.Value()) // the own value if a try before was not acknowledged
				if holder != value && !yields(holder) {
					return holder, nil
				}
				revision, err = c.write(ctx, key, value, held.Revision())
			}
		}
		if err == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.held[name] = claim{value, revision}
			return value, nil
		}
		if !changed(err) {
			return "", fmt.Errorf("claiming %q: %w", name, err)
		}
		if err := timer.Sleep(ctx, replicaPause); err != nil {
			return "", fmt.Errorf("claiming %q: %w", name, err)
		}
	}
}

// read returns the entry of a key, as some replica has it.
func (c *Claims) read(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	return retry(ctx, c.j, c.j.replicaSilence(), func(ctx context.Context) (jetstream.KeyValueEntry, error) { return c.names.Get(ctx, key) })
}

// write writes a value on the condition that the key has a revision, 0 for none. A try that was stored
// and not acknowledged makes it return an error of [changed].
func (c *Claims) write(ctx context.Context, key, value string, before uint64) (revision uint64, err error) {
	return retry(ctx, c.j, c.j.silence(), func(ctx context.Context) (uint64, error) {
		if before == 0 {
			return c.names.Create(ctx, key, []byte(value))
		}
		return c.names.Update(ctx, key, []byte(value), before)
	})
}

// Holder implements cluster.Claims.
func (c *Claims) Holder(ctx context.Context, name string) (string, error) {
	held, err := c.read(ctx, keyOf(name))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading who has %q: %w", name, err)
	}
	return string(held.Value()), nil
}

// Release implements cluster.Claims. Of a name that another hub has claimed, as one that is gone, it
// reads who has it; a replica that is behind may keep the name then.
func (c *Claims) Release(ctx context.Context, name, value string) error {
	c.mu.Lock()
	held := c.held[name]
	own := held.value == value
	if own {
		delete(c.held, name)
	}
	c.mu.Unlock()
	var err error
	if !own {
		var found jetstream.KeyValueEntry
		if found, err = c.read(ctx, keyOf(name)); err == nil {
			if string(found.Value()) != value {
				return nil
			}
			held.revision = found.Revision()
		}
	}
	if err == nil {
		_, err = retry(ctx, c.j, c.j.silence(), func(ctx context.Context) (struct{}, error) {
			return struct{}{}, c.names.Purge(ctx, keyOf(name), jetstream.LastRevision(held.revision), jetstream.PurgeTTL(releasedTime))
		})
	}
	if err == nil || changed(err) {
		return nil // or somebody else has it
	}
	if own {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.held[name].value == "" {
			c.held[name] = held
		}
	}
	return fmt.Errorf("releasing %q: %w", name, err)
}

// changed reports whether the error says that a name has another holder than was read, or none.
func changed(err error) bool {
	return errors.Is(err, jetstream.ErrKeyNotFound) || errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch)
}

// keyOf returns the key of a name: letters, digits, dashes and underscores stand for themselves.
func keyOf(name string) string {
	var key strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c == '-', c == '_':
			key.WriteByte(c)
		default:
			fmt.Fprintf(&key, "=%02X", c)
		}
	}
	return key.String()
}
