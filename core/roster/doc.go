// Package roster keeps the agents that are connected: their cards, their load, and the
// indexes that find them by id and alias, and the best of them by capability and domain.
//
// The hub reports which tasks it assigned to which agent. The roster calls nothing but
// [Member.Principal].
package roster
