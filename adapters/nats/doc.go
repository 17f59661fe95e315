// Package nats keeps the journal on NATS JetStream: on a server embedded in this
// process without a listener, or on an external one at an address.
//
// Tasks that began within the same 4 seconds are a subject of one stream, and what is
// written of them together is a message of it. What was spent stands in a stream of
// its own, and so does every log of records ([Log]). What the acknowledgement of a
// write survives is the sync policy: with [SyncInterval] the end of the process, with
// [SyncAlways] the loss of power as well.
package nats
