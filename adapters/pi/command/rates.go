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
	// maxBuckets bounds the buckets: beyond it the one charged longest ago is dropped.
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
	of      Namespace // zero of bucketAll
	kind    bucketKind
	session string // of the kinds for one session
}

// bucket has the times of the commands that began within the last minute, at most as many
// as its limit. A nil bucket has none.
type bucket struct{ times []time.Duration }

// count drops times that are too old and returns how many are left.
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

// charge is a bucket that a command counts in.
type charge struct {
	key   bucketKey
	limit int
	over  rejection
	text  string
}

// charges appends the buckets of a command, in the order in which they are checked.
func (r *rates) charges(all []charge, of Namespace, c Command) []charge {
	const (
		global = "Global rate limit exceeded (%d commands/minute)"
		other  = "Rate limit exceeded (%d commands/minute)"
	)
	all = append(all, charge{bucketKey{kind: bucketAll}, r.limits.All, overGlobalRate, global})
	all = append(all, charge{bucketKey{of: of, kind: bucketClient}, r.limits.Client, overGlobalRate, global})
	session := c.Session
	if len(session) > MaxID {
		session = "" // one bucket for all ids that are too long for any session
	}
	switch {
	case c.Spec.Session:
		all = append(all, charge{bucketKey{of, bucketSession, session}, r.limits.Session, overRate, other})
	case c.Kind == "delete_session" || c.Kind == "switch_session":
		all = append(all, charge{bucketKey{of, bucketTarget, session}, r.limits.Session, overRate, other})
	default:
		all = append(all, charge{bucketKey{of: of, kind: bucketServer}, r.limits.Server, overRate, other})
	}
	if c.Kind == "extension_ui_response" {
		const text = "Extension UI response rate limit exceeded (%d responses/minute)"
		all = append(all, charge{bucketKey{of, bucketAnswers, session}, r.limits.Answers, overAnswers, text})
	}
	return all
}

// take counts a command that is about to begin. One that is over a limit is counted
// nowhere: take returns which limit, and the error text.
func (r *rates) take(of Namespace, c Command) (rejection, string) {
	now := time.Since(r.began)
	var room [4]charge
	all := r.charges(room[:0], of, c)
	var in [len(room)]*bucket // nil of a new one
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
