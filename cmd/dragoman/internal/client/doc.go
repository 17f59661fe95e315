// Package client connects the program to a running hub: a [Client] calls its REST interface,
// and a [JoinFunc] joins it as an agent in one of the dialects.
//
// Errors are written for users: they say what to do. The commands choose the exit codes.
package client
