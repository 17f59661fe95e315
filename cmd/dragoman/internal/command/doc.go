// Package command has the commands of the program: their flags, what they print and their
// exit codes. [Run] runs one command line.
//
// It is a package of its own, and not main, so that tests can run the program from within
// their own binary.
package command
