package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Run takes part in the cluster until ctx ends; then it tells the others that this life is over.
// It returns once everything that it started has ended. An error says that the bus cannot be
// used at all. It is called once.
func (c *Cluster) Run(ctx context.Context) error {
	if c.alone() {
		<-ctx.Done()
		return nil
	}
	stop, err := c.listen()
	defer stop()
	if err != nil {
		return err
	}
	working, cancel := context.WithCancel(ctx)
	c.start(working)
	var all sync.WaitGroup
	defer all.Wait()
	defer c.saving.Wait()
	defer cancel()
	all.Go(func() { c.tellAll(working) })
	all.Go(func() { c.watch(working) })
	all.Go(func() { c.judgeAlways(working) })
	p := publisher{c: c}
	for timer := time.NewTimer(0); ; {
		select {
		case <-timer.C:
		case <-c.publish:
		case <-ctx.Done():
			timer.Stop()
			p.publish(c.beat(true))
			c.leave()
			return nil
		}
		now := time.Now()
		timer.Reset(p.send(now).Sub(now))
	}
}

// Announce tells the other hubs that this life has begun, until Run is called or ctx ends: reading the
// journal may take long, and a life that nobody hears is taken over. It is called at most once.
func (c *Cluster) Announce(ctx context.Context) error {
	if c.alone() {
		return nil
	}
	c.mu.Lock()
	select {
	case <-c.running:
	default:
		c.starting = true
	}
	c.mu.Unlock()
	stop, err := c.s.Bus.Subscribe(subjectOf(c.self, requestPing), c.answerPing)
	if err != nil {
		return fmt.Errorf("listening to the other hubs: %w", err)
	}
	defer stop()
	p := publisher{c: c}
	for tick := time.NewTicker(beatEvery); ; {
		p.publish(c.beat(false))
		select {
		case <-tick.C:
			continue
		case <-c.running:
		case <-ctx.Done():
		}
		tick.Stop()
		return nil
	}
}

// start begins to listen, once the bus is there.
func (c *Cluster) start(working context.Context) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.starting = false
	close(c.running)
	c.judged, c.working = now, working
	for id, a := range c.own {
		c.save(id, a)
	}
}

// leave ends what waits for the cluster.
func (c *Cluster) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = true
	c.alter()
}

// listen subscribes to what other hubs send.
func (c *Cluster) listen() (stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, s := range stops {
			s()
		}
	}
	for subject, handle := range map[string]func([]byte, func([]byte)){
		subjectHubs:                       c.hear,
		subjectOf(c.self, requestPing):    c.answerPing,
		subjectOf(c.self, requestRelease): c.answerRelease,
	} {
		s, err := c.s.Bus.Subscribe(subject, handle)
		if err != nil {
			return stop, fmt.Errorf("listening to the other hubs: %w", err)
		}
		stops = append(stops, s)
	}
	return stop, nil
}

// judgeAlways looks at all hubs again and again, and starts what has to be done for one. There
// is at most one goroutine of each kind for a hub.
func (c *Cluster) judgeAlways(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	ticks := time.NewTicker(judgeEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
		case <-c.judge:
		case <-ctx.Done():
			return
		}
		c.mu.Lock()
		j := c.judgeAll(time.Now())
		c.mu.Unlock()
		for _, r := range j.ping {
			all.Go(func() { c.ping(ctx, r) })
		}
		for _, call := range j.silent {
			all.Go(call)
		}
		for _, r := range j.takeOver {
			all.Go(func() { c.takeOver(ctx, r) })
		}
	}
}

// tellAll tells the engine the news until ctx ends.
func (c *Cluster) tellAll(ctx context.Context) {
	for {
		for _, call := range c.untold() {
			if ctx.Err() != nil {
				return
			}
			call()
		}
		select {
		case <-c.tell:
		case <-ctx.Done():
			return
		}
	}
}
