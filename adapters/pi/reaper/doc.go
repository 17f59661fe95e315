// Package reaper runs a program and ends with everything that the program began: a
// process of its own, between a hub and what a client runs there. On Linux that holds
// also for what has left the group of the program or the one who began it, since
// orphans become children of the reaper; elsewhere for the group.
//
// Its input is the life line: when that ends, because the hub wants so or is itself no
// more, everything is killed.
package reaper
