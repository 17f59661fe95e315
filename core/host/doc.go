// Package host gives the tasks of a session to an agent in the hub's own process: a child or a
// remote that the hub connects to itself.
//
//	hub.Session ── Next ──▶ host ── Work ──▶ agent.Agent
//	hub.Session ◀─ Report ── host ◀─ Turn ──── agent.Agent
package host
