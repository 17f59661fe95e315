package config

// Quotas are those of each principal: see quota.Limits.
type Quotas struct {
	Connections, Tasks int
	Bytes              int64
	Rate               int
}

func (q *Quotas) settings(t *table) {
	add(t, "connections", &q.Connections, 0, "Maximum number of open connections of a principal with a credential.").atLeast(0)
	add(t, "tasks", &q.Tasks, 0, "Maximum number of tasks of a principal that run or wait for an agent.").atLeast(0)
	add(t, "bytes", &q.Bytes, 0, "Maximum size of the requests and answers of those tasks. Above it, new ones are refused.").bytes().atLeast(0)
	add(t, "rate", &q.Rate, 0, "Maximum number of calls per second, on average. As many may come at once.").atLeast(0)
}
