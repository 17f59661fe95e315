// Package usage adds up tokens (for each task, agent, thread, requester and day,
// from the usage events of tasks), remembers what was spent, and says when a
// budget is.
package usage
