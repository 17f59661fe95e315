package service

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/dragoman-hub/dragoman/core/lru"
)

// pace delays the answers to refused credentials, so that somebody who sends many gets few
// verified: the verification of a signature is what a stranger can make the hub do. Each address
// has refusalsAtOnce answers without delay and then refusalRate a second; all addresses together
// have ten times as many. Credentials that are right never wait, whatever else comes from their
// address.
type pace struct {
	mu   sync.Mutex
	from *lru.Cache[netip.Addr, *rate.Limiter]
	all  *rate.Limiter
}

const (
	refusalRate    = 50 // a second
	refusalsAtOnce = 50
	ofAll          = 10          // times as many of all addresses
	longestDelay   = time.Second // an honest client with an old credential waits no longer
	pacedAddresses = 4096
	pacedTime      = time.Minute
)

func newPace() *pace {
	return &pace{
		from: lru.New(lru.Options[netip.Addr, *rate.Limiter]{Count: pacedAddresses, Age: pacedTime}),
		all:  rate.NewLimiter(ofAll*refusalRate, ofAll*refusalsAtOnce),
	}
}

// wait returns when an address may learn that its credential was refused, or when ctx ends. It
// counts each answer that has to wait.
func (p *pace) wait(ctx context.Context, from netip.Addr, count func(name string)) {
	delay := p.delay(from)
	if delay <= 0 {
		return
	}
	count("auth.delayed")
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// delay counts a refusal and returns how long its answer has to wait.
func (p *pace) delay(from netip.Addr) time.Duration {
	if from = from.Unmap(); from.Is6() { // a host may use every address of its network
		network, _ := from.WithZone("").Prefix(64) // 64 bits are possible
		from = network.Addr()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	limiter, known := p.from.Get(from)
	if !known {
		limiter = rate.NewLimiter(refusalRate, refusalsAtOnce)
		p.from.Put(from, limiter)
	}
	return max(reserve(limiter), reserve(p.all))
}

// reserve returns when the next refusal is due, or the longest delay if that is later: then it
// is not counted, so that the delay ends with the flood.
func reserve(l *rate.Limiter) time.Duration {
	r := l.Reserve()
	if delay := r.Delay(); delay <= longestDelay {
		return delay
	}
	r.Cancel()
	return longestDelay
}
