// Command path counts what a hub runs for one question: functions, their files and packages, statements, calls, locks
// and allocations, for a question of a pi client, one over REST, one ACP query and one of a client of Coven's
// ClientService, each to a Coven agent, and for a further chunk of an answer to a pi client.
//
//	make path             # a row for each
//	make path LIST=1      # and every function, with its calls for a question
//	make path JOURNAL=1   # of hubs with a journal
//
// The program is built with the counters of go build -cover. One hub is asked 5 questions, and another one 25, each
// over one connection and one after the other. What the second has counted more is what 20 questions cost, without
// starts and ends. A block of code is on the path if it ran for at least every second of them, and a function if
// one of its blocks is. Statements and calls are counted as often as they run, per question. A function literal belongs
// to the function around it. Generated code is counted, code of other modules is not.
//
// Locks are calls of Lock and RLock of package sync in the whole process, of which sync has counters, too.
// Allocations are objects on the heap, by the metrics of a plain program, since counters cause some more; they are
// those of 400 questions. The last row is what 5 answers of 65 chunks to a pi client have more than 5 of one,
// for each chunk; every chunk comes once the client has the one before, so that it is written and read alone.
//
// Statements, calls and locks vary by some percent from run to run, allocations by two, functions by one or two: how much is
// written or read at once depends on the scheduler. The questions of the pi client belong to one conversation, so that its
// numbers contain what is done for each earlier turn.
package main
