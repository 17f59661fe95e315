// Command covenagent is a complete Coven agent in one short file: it joins a hub, answers every
// request in capitals, a word at a time, and can be cancelled. It uses only gRPC and the
// generated protocol, so that the file can be copied.
//
//	go run ./docs/examples/covenagent -hub 127.0.0.1:50051 -id shouter
//	dragoman ask shouter "good day"
//
// Where everybody has to authenticate, DRAGOMAN_TOKEN has its token, and -id is the name of
// the token's principal, or one that its agents allow. -ca is for a hub with TLS.
package main
