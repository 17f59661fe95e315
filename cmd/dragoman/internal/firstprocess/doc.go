// Package firstprocess is the program as process 1 of a container.
//
// A process whose parent has ended becomes a child of process 1, which has to wait for it, or it stays as a zombie.
// Agents and packs leave such processes. The program cannot wait for them beside its own children, whose ends it
// would take from those that wait for them, so it runs as a child of a process that does nothing else: it passes on
// signals, waits for all, and ends as the program does.
package firstprocess
