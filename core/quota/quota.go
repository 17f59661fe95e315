package quota

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/memory"
)

// Limits are the quotas of each principal. A zero field is no limit.
type Limits struct {
	// Connections is how many connections may be open.
	Connections int
	// Tasks is how many tasks may run or wait for an agent.
	Tasks int
	// Bytes bounds the requests and answers of those tasks.
	Bytes int64
	// Rate is how many calls a second are allowed on average. As many may come at once.
	Rate float64
}

// Kind names a quota. The zero Kind is unset.
type Kind uint8

// The quotas.
const (
	_ Kind = iota
	Connections
	Tasks
	Bytes
	Rate
	kindEnd
)

var names = [kindEnd]string{"", "connections", "tasks", "bytes", "rate"}

// String returns the name of the quota in the settings, after "quotas.".
func (k Kind) String() string { return names[min(k, kindEnd-1)] }

// Kinds returns every quota.
func Kinds() []Kind { return []Kind{Connections, Tasks, Bytes, Rate} }

// Book has the accounts of all principals. A nil Book limits nothing. It is safe for concurrent
// use, and implements policy.Limiter.
type Book struct {
	limits  Limits
	refused [kindEnd]atomic.Int64

	mu       sync.Mutex
	accounts map[string]*account
	sweepAt  int // how many accounts there are before unused ones are dropped
}

// NewBook returns a Book without accounts; nil if nothing is limited.
func NewBook(l Limits) *Book {
	if l == (Limits{}) {
		return nil
	}
	return &Book{limits: l, accounts: map[string]*account{}, sweepAt: minSweep}
}

// minSweep is the least number of accounts at which unused ones are dropped.
const minSweep = 1024

// account is what one principal has. Book.mu guards all but bytes.
type account struct {
	connections, tasks int
	bytes              *memory.Budget
	calls              *rate.Limiter // nil if there is no limit
}

// isUnused reports whether the account is like a new one.
func (a *account) isUnused(now time.Time) bool {
	return a.connections == 0 && a.tasks == 0 && (a.calls == nil || a.calls.TokensAt(now) >= float64(a.calls.Burst()))
}

// of returns the account of a principal, and who that is in messages. The caller holds mu.
func (b *Book) of(p core.Principal) (a *account, who string) {
	key, who := p.Account(), "all who have no credential together"
	if p.Authenticated {
		who = p.ID
	}
	if a = b.accounts[key]; a != nil {
		return a, who
	}
	if now := time.Now(); len(b.accounts) >= b.sweepAt {
		for key, a := range b.accounts {
			if a.isUnused(now) {
				delete(b.accounts, key)
			}
		}
		b.sweepAt = max(minSweep, 2*len(b.accounts))
	}
	a = &account{bytes: memory.New(b.limits.Bytes)}
	if r := b.limits.Rate; r > 0 {
		a.calls = rate.NewLimiter(rate.Limit(r), int(math.Ceil(r)))
	}
	b.accounts[key] = a
	return a, who
}

// refuse returns the Fault of a refusal, and counts it.
func (b *Book) refuse(k Kind, code core.Code, retry time.Duration, format string, args ...any) error {
	b.refused[k].Add(1)
	f := core.NewFault(code, format, args...)
	f.RetryAfter = core.Seconds(retry)
	return f
}

// Refused returns how much the quota has refused.
func (b *Book) Refused(k Kind) int64 {
	if b == nil {
		return 0
	}
	return b.refused[k].Load()
}

// soon is when to come again if nobody knows when there will be room.
const soon = time.Second

// Connect counts a connection of an authenticated principal. It returns an overloaded Fault if
// that has too many, else a function that gives the connection back, to be called once.
func (b *Book) Connect(p core.Principal) (leave func(), err error) {
	if b == nil || b.limits.Connections <= 0 || !p.Authenticated {
		return func() {}, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	a, who := b.of(p)
	if a.connections >= b.limits.Connections {
		return nil, b.refuse(Connections, core.CodeOverloaded, soon, "%s has %d connections, which is the limit (quotas.connections): close one, then connect again", who, a.connections)
	}
	a.connections++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		a.connections--
	}, nil
}

// Admit implements policy.Limiter: it returns a rate_limited Fault if the principal has to wait.
// A call of a part of the program to open a task for another counts for that one.
func (b *Book) Admit(c core.Call) error {
	if b == nil || b.limits.Rate <= 0 || !c.Command.Act().IsLimited() {
		return nil
	}
	p := c.Principal
	if cmd, ok := c.Command.(*core.Open); ok && cmd.For.ID != "" && p.Component {
		p = cmd.For
	}
	if p.Component {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	a, who := b.of(p)
	now := time.Now()
	r := a.calls.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait <= 0 {
		return nil
	}
	r.CancelAt(now)
	return b.refuse(Rate, core.CodeRateLimited, wait, "%s may make %g calls a second (quotas.rate): come again in %s", who, b.limits.Rate, ceil(wait))
}

// ceil rounds up to a hundredth of a second.
func ceil(d time.Duration) time.Duration {
	const unit = 10 * time.Millisecond
	up := d.Round(unit)
	if up < d {
		up += unit
	}
	return up
}

// Work is a task that counts for a principal. A nil Work counts nothing. Its owner guards it.
type Work struct {
	book    *Book
	account *account
	bytes   memory.Share
	ended   bool
}

// Begin counts a task of a principal with a request of so many bytes. It returns an overloaded
// Fault if the principal has too many tasks, or too many bytes in them, and a too_large one if the
// request alone has too many.
func (b *Book) Begin(p core.Principal, bytes int) (*Work, error) {
	if b == nil || p.Component || b.limits.Tasks <= 0 && b.limits.Bytes <= 0 {
		return nil, nil //nolint:nilnil // nil counts nothing
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	a, who := b.of(p)
	if most := b.limits.Bytes; most > 0 && int64(bytes) > most {
		return nil, b.refuse(Bytes, core.CodeTooLarge, 0, "the request has %d bytes, and all tasks of %s together may have %d (quotas.bytes): send less, or say where it is", bytes, who, most)
	}
	if b.limits.Tasks > 0 && a.tasks >= b.limits.Tasks {
		return nil, b.refuse(Tasks, core.CodeOverloaded, soon, "%s has %d tasks that run or wait, which is the limit (quotas.tasks): ask again once one has ended", who, a.tasks)
	}
	w := &Work{book: b, account: a, bytes: memory.Of(a.bytes, memory.Logs)}
	if !w.bytes.TryTake(bytes) {
		return nil, b.refuse(Bytes, core.CodeOverloaded, soon, "the tasks of %s hold %d bytes, and this one has %d; the limit is %d (quotas.bytes): ask for less, or again once one has ended",
			who, a.bytes.Held(), bytes, b.limits.Bytes)
	}
	a.tasks++
	return w, nil
}

// Add counts bytes that were said in the task, whatever the quota.
func (w *Work) Add(bytes int) {
	if w != nil && !w.ended {
		w.bytes.Add(bytes)
	}
}

// End gives everything back. Only the first call has an effect.
func (w *Work) End() {
	if w == nil || w.ended {
		return
	}
	w.ended = true
	w.bytes.Release()
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	w.account.tasks--
}
