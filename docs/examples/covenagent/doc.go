// Command covenagent is a whole Coven agent in one short file: it joins a hub,
// answers every request in capitals, a word at a time, and can be stopped. It uses
// nothing but gRPC and the generated protocol, so that it can be copied as it is.
//
//	go run ./docs/examples/covenagent -hub 127.0.0.1:50051 -id shouter
//	dragoman ask shouter "good day"
package main
