// Package usage adds up tokens: for each agent, thread, requester and day, from
// the usage events of tasks.
package usage
