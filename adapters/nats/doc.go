// Package nats keeps the journal on NATS JetStream: on a server embedded in this
// process without a listener, or on an external one at an address.
//
// Every task is a subject of one stream, every event a message of it; what was
// spent stands in a stream of its own, and so does every log of records ([Log]). What the acknowledgement of a write survives
// is the sync policy: with [SyncInterval] the end of the process, with [SyncAlways]
// the loss of power as well.
package nats
