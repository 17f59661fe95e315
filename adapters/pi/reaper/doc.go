// Package reaper runs a program and, when it ends, kills every process that the program
// started. A reaper is a separate process between a hub and a program of a client. On
// Linux it also kills processes that have left the process group of the program, since
// orphans become children of the reaper; elsewhere it kills only the group, and on Windows,
// which has no groups, only the program.
//
// Its stdin is a lifeline: when stdin ends, because the hub closed it or died, the reaper
// kills everything.
package reaper
