// Command dragoman is a hub that interprets between AI agents: an agent joins in
// the dialect that it speaks, and can ask and be asked by all the others.
//
// The package is the program around the library. config.go reads the settings,
// service.go puts the hub together and takes it down, and dialects.go is the one
// table in which transports and dialects meet. The other files are the commands;
// those that talk to a running hub do so through its REST interface.
package main
