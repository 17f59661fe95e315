// Package agent runs the tasks that an agent gets from a hub: a bounded number at once, each
// cancelled by its id. The agent's end of every dialect uses it.
package agent
