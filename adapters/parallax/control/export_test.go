package control

// Transport is the default transport of deliveries.
var Transport = Targets.transport

// ForbiddenAddress is the error of a connection that Transport refuses.
type ForbiddenAddress = forbiddenAddress

// QueueIsEmpty reports whether no delivery waits or is in flight.
func (c *Control) QueueIsEmpty() bool {
	q := &c.webhooks.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.byDue) == 0 && len(q.inFlight) == 0 && len(q.blocked) == 0 && q.bytes == 0
}
