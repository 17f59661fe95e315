// Package coretest has what the tests of the program share.
//
// [NewHub] is a hub whose promises are checked at the end of a test. [Journal], [Usage] and
// [RecordLog] are the suites of the stores; [MemoryUsage] and [MemoryLog] are stores in
// memory. [Pipe] is a connection in memory, and [Break] adds faults to any connection: delay,
// a cut, a duplicate, a stall. [Network] is the bus of a cluster with such faults, [Claims] its
// claims. All work under testing/synctest. [Disk] is a small disk that a
// test may fill, [Address] an address that a test may keep for a server that comes and goes.
package coretest
