package control

// QueueIsEmpty reports whether no delivery waits or is in flight.
func (c *Control) QueueIsEmpty() bool { return c.webhooks.sender.IsIdle() }
