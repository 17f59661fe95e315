// Package command has the commands of the program: their flags, what they print and their
// exit codes. [Run] runs one command line.
//
// It is separate from main so that tests can run the program within their own process.
package command
