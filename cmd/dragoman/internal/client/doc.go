// Package client is how the program talks to a hub that runs: a [Client] calls its REST
// interface, and a [JoinFunc] joins it as an agent in one of the dialects.
//
// Errors are for people: they say what to write instead. Which exit code an error comes to
// is for the commands to say.
package client
