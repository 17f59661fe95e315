// Package roster knows who is here: the cards of the agents that joined, how much
// each has to do, and who answers for an address.
//
// It counts and chooses; it calls nobody. The hub tells it what was given to whom.
package roster
