// Package roster keeps the agents that are connected: their cards, their load, and the
// indexes that find them by id and alias, and the best of them by capability and domain.
//
// It calls nobody, except that it asks members for their principals. The hub tells it which tasks it assigned to which agent.
package roster
