package command

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// Every name leads to the command that has it.
func TestTheReplayCacheKeepsItsBoundsAndItsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newReplayCache(Options{MaxOutcomes: 5, OutcomeBytes: 20 * OutcomeOverhead, KeyTTL: 10 * time.Second})
		now := time.Unix(0, 0)
		var inFlight []*tracked
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "seconds")) * time.Second)
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				c.forgetNamespace(Namespace{Conn: rapid.Uint64Range(1, 3).Draw(t, "leaves")})
			case 1, 2, 3:
				id, key := rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e", "f", "g", "h"}).Draw(t, "id"), rapid.SampledFrom([]string{"", "", "k", "l"}).Draw(t, "key")
				k := &tracked{commandInfo: commandInfo{name: id, key: key}, ids: appendIDs(nil, Namespace{Conn: rapid.Uint64Range(0, 3).Draw(t, "conn")}, id, key), x: &Execution{}}
				if key != "" {
					k.keyed = scopedKey{"", "s", key}
				}
				if before, conflict := c.find(k, now); before == nil && conflict == "" {
					c.add(k)
					inFlight = append(inFlight, k)
				}
			default:
				if len(inFlight) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(inFlight)-1).Draw(t, "finishes")
				c.settle(inFlight[i], response{data: []byte(strings.Repeat("x", rapid.IntRange(0, 9*OutcomeOverhead).Draw(t, "bytes")))}, now)
				inFlight = slices.Delete(inFlight, i, i+1)
			}
			checkReplayCache(t, &c)
		}
	})
}

func checkReplayCache(t *rapid.T, c *replayCache) {
	held, outcomes := 0, map[*tracked]bool{}
	for e := c.order.Front(); e != nil; e = e.Next() {
		k := e.Value.(*tracked)
		held, outcomes[k] = held+k.size, true
		if len(k.ids) == 0 && k.keyed == (scopedKey{}) {
			t.Fatalf("%+v is kept, and no name leads to it", k.commandInfo)
		}
	}
	if held != c.bytes || held > c.maxBytes {
		t.Fatalf("got %d bytes held and %d counted, want the same and at most %d", held, c.bytes, c.maxBytes)
	}
	for of, line := range c.namespaces {
		if line.Len() > c.maxIDs || line.Len() == 0 {
			t.Fatalf("got %d outcomes of %v, want 1 to %d", line.Len(), of, c.maxIDs)
		}
	}
	for _, k := range slices.Concat(slices.Collect(maps.Values(c.ids)), slices.Collect(maps.Values(c.keys))) {
		if k.x == nil && !outcomes[k] {
			t.Fatalf("a name leads to %+v, which is not kept", k.commandInfo)
		}
	}
}

func TestIDsThatAreTooLongShareOneRateBucket(t *testing.T) {
	r := newRates(Rates{Client: -1, Server: -1}.withDefaults())
	for i := range 2 * maxBuckets {
		c := Command{Kind: "get_state", Session: strings.Repeat("x", MaxID) + strconv.Itoa(i), Spec: Table["get_state"]}
		if _, text := r.take(Namespace{}, c); (text != "") != (i >= r.limits.Session) {
			t.Fatalf("command %d for a session that cannot be: got %q", i, text)
		}
	}
	if r.buckets.Len() != 1 {
		t.Errorf("got %d buckets, want one for all of them", r.buckets.Len())
	}
}

func TestRateBucketsAreBoundedAndExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRates(Rates{Session: 2, Server: 2, Answers: 2})
		of := func(session string) Command {
			c, err := Decode(fmt.Appendf(nil, `{"type":"get_state","sessionId":%q}`, session), 1000)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		for i := range maxBuckets + 100 {
			r.take(Namespace{}, of(fmt.Sprint(i)))
		}
		if got := r.buckets.Len(); got != maxBuckets {
			t.Errorf("buckets: got %d, want %d", got, maxBuckets)
		}
		time.Sleep(rateWindow)
		r.take(Namespace{}, of("s"))
		if got := r.buckets.Len(); got != 1 {
			t.Errorf("buckets after a minute: got %d, want 1", got)
		}
	})
}

func TestATrimmedCommandHoldsNoMoreThanItsFields(t *testing.T) {
	frame := `{"message":"` + strings.Repeat("x", 1000) + `"` + strings.Repeat(" ", 1000) + `,"id":"1","type":"bash","command":"ls"}`
	c, err := Decode([]byte(frame), len(frame))
	if err != nil {
		t.Fatal(err)
	}
	x := &Execution{Command: c}
	x.keepFields("command", "cwd")
	if got := x.object.Memory(); x.object.Len() != 3 || got > 300 {
		t.Errorf("got %d bytes held for %s, want as many as the id, the type and the command take", got, x.object.Raw())
	}
}
