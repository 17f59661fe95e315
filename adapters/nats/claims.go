package nats

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
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
	c.mu.Lock()
	before := c.held[name].revision
	c.mu.Unlock()
	for {
		revision, err := c.write(ctx, key, value, before)
		if changed(err) {
			var held jetstream.KeyValueEntry
			if held, err = c.read(ctx, key); err == nil {
				holder := string(held.Value()) // the own value if a try before was not acknowledged
				if holder != value && !yields(holder) {
					return holder, nil
				}
				revision, err = c.write(ctx, key, value, held.Revision())
			}
			before = 0
		}
		if err == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.held[name] = claim{value, revision}
			c.tell(name, value, revision)
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
		c.tell("", "", 0)
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

const (
	// subjectClaims is where hubs tell each other that they have written names.
	subjectClaims = "claims"
	// watchEvery is how often names are read that no hub has told of.
	watchEvery = 250 * time.Millisecond
	// writtenAtOnce is how many of the names that hubs tell of may wait.
	writtenAtOnce = 1024
	// toldBytes is how large a value is told at most: a larger one is read.
	toldBytes = 4 << 10
	// watchGap is how long to wait for a name that another one has overtaken.
	watchGap = 10 * time.Millisecond
	// watchBehind is how far a watch may be behind: longer ago the bucket remembers what was given back.
	watchBehind = releasedTime / 2
)

// tell tells the hubs that a name was written, with its place in the bucket, or zero. They look by
// themselves, too.
func (c *Claims) tell(name, value string, revision uint64) {
	if len(value) > toldBytes {
		name, value, revision = "", "", 0
	}
	data := binary.BigEndian.AppendUint64(nil, revision)
	data = binary.AppendUvarint(data, uint64(len(name)))
	_ = c.j.bus.Publish(subjectClaims, append(append(data, name...), value...))
}

// written is what a hub tells of a name that it has written.
type written struct {
	name, holder string
	revision     uint64
}

func readWritten(data []byte) (w written) {
	if len(data) > 8 {
		size, n := binary.Uvarint(data[8:])
		if rest := data[8+max(n, 0):]; n > 0 && size <= uint64(len(rest)) {
			w = written{string(rest[:size]), string(rest[size:]), binary.BigEndian.Uint64(data)}
		}
	}
	return w
}

// Watch implements cluster.Claims. What a hub tells is taken if it is next in the bucket. Else any replica
// tells what was written since: no consumer has to be made again where one was lost.
func (c *Claims) Watch(ctx context.Context, prefix string, all func(map[string]string), change func(name, holder string)) error {
	told := make(chan written, writtenAtOnce)
	stop, err := c.j.bus.Subscribe(subjectClaims, func(data []byte, _ func([]byte)) {
		select {
		case told <- readWritten(data):
		default: // the place of the next one tells that one is missing
		}
	})
	if err != nil {
		return err
	}
	defer stop()
	ticks := time.NewTicker(watchEvery)
	defer ticks.Stop()
	holders := map[string]string{}
	next, err := c.since(ctx, 1, true, prefix, func(name, holder string) { holders[name] = holder })
	maps.DeleteFunc(holders, func(_, holder string) bool { return holder == "" })
	if err == nil {
		all(holders)
	}
	early, waits := map[uint64]written{}, false // by place, behind one that is missing
	late := time.NewTimer(watchGap)
	defer late.Stop()
	for read := time.Now(); err == nil; {
		select {
		case w := <-told:
			if len(early) < writtenAtOnce { // else what comes is read
				early[w.revision] = w
			}
			for ; early[next].revision == next; next++ {
				if strings.HasPrefix(early[next].name, prefix) {
					change(early[next].name, early[next].holder)
				}
				delete(early, next)
			}
			if len(early) > 0 && !waits {
				waits = true
				late.Reset(watchGap)
			}
			continue
		case <-late.C:
		case <-ticks.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		waits = false
		next, err = c.since(ctx, next, false, prefix, change)
		maps.DeleteFunc(early, func(revision uint64, _ written) bool { return revision < next })
		if time.Since(read) > watchBehind {
			return errors.New("the names were not read for too long")
		}
		read = time.Now()
	}
	return fmt.Errorf("watching names: %w", err)
}

// since calls each for what was written of names with a prefix, from a place in the bucket on: all of it or
// some. It returns where to go on.
func (c *Claims) since(ctx context.Context, next uint64, all bool, prefix string, each func(name, holder string)) (uint64, error) {
	f := &fence{j: c.j, stream: "KV_" + c.names.Bucket()}
	subject := "$KV." + c.names.Bucket() + "."
	for wait := c.j.replicaSilence(); ; wait = c.j.longer(wait) {
		for more := true; more; {
			var err error
			ask := getRequest{Seq: next, Next: everything, Batch: batchMessages, Bytes: batchBytes}
			next, more, err = f.batch(ctx, ask, math.MaxUint64, wait, func(m message, _ error) bool {
				if name := nameOf(strings.TrimPrefix(m.subject, subject)); strings.HasPrefix(name, prefix) {
					each(name, holderIn(m))
				}
				return true
			})
			if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && !all {
				return next, nil
			}
			if err != nil && !errors.Is(err, errSilent) && !errors.Is(err, nats.ErrNoResponders) {
				return next, err
			}
		}
		if err := timer.Sleep(ctx, replicaPause); err != nil {
			return next, err
		}
	}
}

// holderIn returns who has a name by a message of the bucket: "" after it was given back.
func holderIn(m message) string {
	if m.header.Get("KV-Operation") != "" || m.header.Get(jetstream.MarkerReasonHeader) != "" {
		return ""
	}
	return string(m.data)
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

// nameOf returns the name of a key.
func nameOf(key string) string {
	var name strings.Builder
	for i := 0; i < len(key); i++ {
		if n, err := strconv.ParseUint(key[min(i+1, len(key)):min(i+3, len(key))], 16, 8); key[i] == '=' && err == nil {
			name.WriteByte(byte(n))
			i += 2
			continue
		}
		name.WriteByte(key[i])
	}
	return name.String()
}
