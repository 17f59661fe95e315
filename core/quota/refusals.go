package quota

import (
	"golang.org/x/time/rate"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/lru"
)

// The measure of [Refusals].
const (
	refusalsAtOnce    = 100
	refusalsPerSecond = 1
	refusedPrincipals = 4096
)

// Refusals are how much principals were refused lately. A refused request is recorded, without its content, so that
// people see that it came. The journal and the lists of tasks have bounds, and one who is refused must not spend
// what others have stored: beyond 100 at once and one a second a principal is told why it is refused, and
// nothing else is kept. It is not safe for concurrent use.
type Refusals struct {
	by *lru.Cache[string, *rate.Limiter]
}

// NewRefusals returns Refusals of nobody. They know the latest 4,096 principals.
func NewRefusals() Refusals {
	return Refusals{lru.New(lru.Options[string, *rate.Limiter]{Count: refusedPrincipals})}
}

// Take counts a refusal of a principal, and reports whether it is to be recorded.
func (r *Refusals) Take(p core.Principal) bool {
	l, ok := r.by.Get(p.Account())
	if !ok {
		l = rate.NewLimiter(refusalsPerSecond, refusalsAtOnce)
	}
	r.by.Put(p.Account(), l)
	return l.Allow()
}
