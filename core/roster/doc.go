// Package roster keeps the agents that are connected: their cards, their load, and an
// index that finds the best agent for an address.
//
// It calls nobody. The hub tells it which tasks it assigned to which agent.
package roster
