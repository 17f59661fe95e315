// Package reaper runs a program and, when that ends, kills everything that the program
// started. It is a process of its own, between a hub and the programs of its clients. On
// Linux it also ends processes that have left the process group of the program, since
// orphans become children of the reaper; elsewhere it ends the group.
//
// Its input is a lifeline: when the input ends, because the hub closes it or has died,
// everything is killed.
package reaper
