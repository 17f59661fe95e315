package memory

import "sync/atomic"

// Kind says what bytes are held for. The zero Kind is unset.
type Kind uint8

// The kinds.
const (
	_       Kind = iota
	Logs         // events of tasks that run
	Ended        // events of tasks that have ended: kept, not recorded yet, or being read
	Inboxes      // results and questions that a session has not read
	Sending      // messages that a transport has not taken
	Bodies       // bodies of requests that are being read or answered
	Frames       // frames of connections that people may look at
	Catalog      // what is known of tasks that are not in memory
	// Registrations are threads that are followed, and conversations whose questions are watched.
	Registrations
	kindEnd
)

var names = [kindEnd]string{"", "logs", "ended", "inboxes", "sending", "bodies", "frames", "catalog", "registrations"}

// String returns the name of the kind, as in the metrics.
func (k Kind) String() string { return names[min(k, kindEnd-1)] }

// Kinds returns every kind.
func Kinds() []Kind {
	return []Kind{Logs, Ended, Inboxes, Sending, Bodies, Frames, Catalog, Registrations}
}

// Budget counts bytes against a limit. A nil Budget counts nothing and refuses nothing. It is
// safe for concurrent use.
type Budget struct {
	limit   int64
	kinds   [kindEnd]atomic.Int64
	refused atomic.Int64
}

// New returns an empty Budget. A limit of zero or less counts without a limit.
func New(limit int64) *Budget { return &Budget{limit: max(0, limit)} }

// Limit returns the limit in bytes; 0 if there is none.
func (b *Budget) Limit() int64 {
	if b == nil {
		return 0
	}
	return b.limit
}

// Held returns how many bytes are held, of all kinds.
func (b *Budget) Held() (sum int64) {
	for _, k := range Kinds() {
		sum += b.HeldAs(k)
	}
	return sum
}

// HeldAs returns how many bytes of the kind are held.
func (b *Budget) HeldAs(k Kind) int64 {
	if b == nil {
		return 0
	}
	return b.kinds[k].Load()
}

// Refused returns how often the budget was full for new work.
func (b *Budget) Refused() int64 {
	if b == nil {
		return 0
	}
	return b.refused.Load()
}

// Refuse counts new work that was refused because the budget is full.
func (b *Budget) Refuse() {
	if b != nil {
		b.refused.Add(1)
	}
}

// IsFull reports whether the limit is reached.
func (b *Budget) IsFull() bool { return b != nil && b.limit > 0 && b.Held() >= b.limit }

// IsOver reports whether so much is held beyond the limit that what runs must stop growing: an
// eighth. Another eighth may be held of what has ended, which is given back soon.
func (b *Budget) IsOver() bool {
	return b != nil && b.limit > 0 && b.Held()-min(b.HeldAs(Ended), b.limit/8) > b.limit+b.limit/8
}

// TryTake counts n bytes for new work, unless the sum would exceed the limit. It reports
// whether it did.
func (b *Budget) TryTake(k Kind, n int) bool {
	if b == nil {
		return true
	}
	b.kinds[k].Add(int64(n))
	if b.limit > 0 && b.Held() > b.limit {
		b.kinds[k].Add(-int64(n))
		return false
	}
	return true
}

// Take counts n bytes of what runs already, whatever the limit. Less than zero gives them back.
func (b *Budget) Take(k Kind, n int) {
	if b != nil && n != 0 {
		b.kinds[k].Add(int64(n))
	}
}

// step is how many bytes a [Share] may hold or give back before it tells its Budget. It bounds
// the error of the sum per holder.
const step = 4 << 10

// Share is what one holder has of a Budget. The zero Share counts nothing. Its owner guards it.
type Share struct {
	budget     *Budget
	kind       Kind
	held, told int
}

// Of returns an empty Share of the budget for bytes of the kind.
func Of(b *Budget, k Kind) Share { return Share{budget: b, kind: k} }

// TryTake adds n bytes for new work, unless the budget would be over its limit. It reports
// whether it did.
func (s *Share) TryTake(n int) bool {
	if !s.budget.TryTake(s.kind, s.held+n-s.told) {
		return false
	}
	s.held += n
	s.told = s.held
	return true
}

// Add adds n bytes, whatever the limit; less than zero gives them back.
func (s *Share) Add(n int) {
	s.held += n
	if d := s.held - s.told; s.budget != nil && (d >= step || d <= -step) {
		s.budget.kinds[s.kind].Add(int64(d))
		s.told = s.held
	}
}

// Become counts the bytes of the Share as another kind from now on.
func (s *Share) Become(k Kind) {
	if s.kind != k {
		s.budget.Take(k, s.told) // first, so that the sum is never too small
		s.budget.Take(s.kind, -s.told)
		s.kind = k
	}
}

// Held returns the bytes of the Share.
func (s *Share) Held() int { return s.held }

// Release gives back all of it.
func (s *Share) Release() {
	s.budget.Take(s.kind, -s.told)
	s.held, s.told = 0, 0
}
