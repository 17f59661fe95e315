package command

import (
	"cmp"
	"fmt"
	"time"

	"github.com/dragoman-hub/dragoman/core/lru"
)

// Rates are how many commands may begin within any minute (facts, section 1.4). A
// zero field takes its default, a negative one sets no limit. A client here is a
// principal, over all of its connections, or on an open hub one connection: none can
// lock the others out.
type Rates struct {
	// All bounds the commands of the whole hub; default without limit.
	All int
	// Client bounds all commands of a client; default 1000.
	Client int
	// Session bounds a client's commands for one session, whether or not there is such a
	// one, and apart from them its delete_session and switch_session; default 100.
	Session int
	// Server bounds all other server commands of a client; default 100.
	Server int
	// Answers bounds a client's extension_ui_response for one session; default 60.
	Answers int
}

func (r Rates) withDefaults() Rates {
	return Rates{r.All, cmp.Or(r.Client, 1000), cmp.Or(r.Session, 100), cmp.Or(r.Server, 100), cmp.Or(r.Answers, 60)}
}

const (
	rateWindow = time.Minute
	// maxBuckets bounds how many are remembered: beyond it the one that was charged
	// the longest ago is forgotten.
	maxBuckets = 10_000
)

// bucketKind says what a bucket counts.
type bucketKind uint8

// The kinds of buckets.
const (
	_         bucketKind = iota
	bucketAll            // of the whole hub
	bucketClient
	bucketSession
	bucketTarget // delete_session and switch_session of one session
	bucketServer
	bucketAnswers
)

type bucketKey struct {
	of      Namespace // nobody's of bucketAll
	kind    bucketKind
	session string // of the kinds that are of one session
}

// bucket has the times of what began within the last minute, at most as many as
// its limit. A nil bucket has none.
type bucket struct{ times []time.Duration }

// count forgets what is too old and returns how many there are.
func (b *bucket) count(now time.Duration) int {
	if b == nil {
		return 0
	}
	old := 0
	for old < len(b.times) && b.times[old] <= now-rateWindow {
		old++
	}
	b.times = b.times[old:]
	return len(b.times)
}

// rates are the sliding windows of a server.
type rates struct {
	limits  Rates
	began   time.Time
	buckets *lru.Cache[bucketKey, *bucket]
}

func newRates(limits Rates) rates {
	return rates{
		limits: limits, began: time.Now(), buckets: lru.New(lru.Options[bucketKey, *bucket]{Count: maxBuckets, Age: rateWindow}),
	}
}

// charge is one bucket that a command counts in.
type charge struct {
	key   bucketKey
	limit int
	over  rejection
	text  string
}

// charges appends the buckets of a command, in the order in which they are checked.
func (r *rates) charges(all []charge, of Namespace, c Command) []charge {
	const (
		together  = "Global rate limit exceeded (%d commands/minute)"
		perMinute = "Rate limit exceeded (%d commands/minute)"
	)
	all = append(all, charge{bucketKey{kind: bucketAll}, r.limits.All, overGlobalRate, together})
	all = append(all, charge{bucketKey{of: of, kind: bucketClient}, r.limits.Client, overGlobalRate, together})
	session := c.Session
	if len(session) > MaxID {
		session = "" // one bucket for all names that no session can have, however long
	}
	switch {
	case c.Spec.Session:
		all = append(all, charge{bucketKey{of, bucketSession, session}, r.limits.Session, overRate, perMinute})
	case c.Kind == "delete_session" || c.Kind == "switch_session":
		all = append(all, charge{bucketKey{of, bucketTarget, session}, r.limits.Session, overRate, perMinute})
	default:
		all = append(all, charge{bucketKey{of: of, kind: bucketServer}, r.limits.Server, overRate, perMinute})
	}
	if c.Kind == "extension_ui_response" {
		const text = "Extension UI response rate limit exceeded (%d responses/minute)"
		all = append(all, charge{bucketKey{of, bucketAnswers, session}, r.limits.Answers, overAnswers, text})
	}
	return all
}

// take counts a command that is about to begin. One that is beyond a limit is
// counted nowhere: take returns the limit and the text that says so.
func (r *rates) take(of Namespace, c Command) (rejection, string) {
	now := time.Since(r.began)
	var room [4]charge
	all := r.charges(room[:0], of, c)
	var in [len(room)]*bucket // nil of one to be made
	for i := range all {
		ch := &all[i]
		in[i], _ = r.buckets.Get(ch.key)
		if ch.limit > 0 && in[i].count(now) >= ch.limit {
			return ch.over, fmt.Sprintf(ch.text, ch.limit)
		}
	}
	for i := range all {
		if all[i].limit <= 0 {
			continue
		}
		b := in[i]
		if b == nil {
			b = &bucket{}
		}
		b.times = append(b.times, now)
		r.buckets.Put(all[i].key, b)
	}
	return 0, ""
}

// used returns how many commands of the client began within the last minute.
func (r *rates) used(of Namespace) int {
	b, _ := r.buckets.Get(bucketKey{of: of, kind: bucketClient})
	return b.count(time.Since(r.began))
}
