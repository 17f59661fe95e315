// Package agent runs what a hub gives an agent: at most so many tasks at once, each
// cancelled by its id. It is the loop behind the agent's end of every dialect.
package agent
