// Package coretest is the stage on which the rest of the program is tested.
//
// [Pipe] is a connection in memory and [Break] adds faults to any connection:
// delay, a cut, a duplicate, a stall. Both work under testing/synctest, where
// time is free. [Disk] is a small disk that a test may fill.
package coretest
