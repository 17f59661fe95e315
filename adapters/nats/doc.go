// Package nats keeps the journal on NATS JetStream: on a server embedded in this
// process without a listener, or on an external one.
//
// Tasks that began within the same 4 seconds share a subject of one stream, and their
// records that are written together share a message. Usage records have a stream of
// their own, and so has each [Log]. The sync policy decides what an acknowledged write
// survives: with [SyncInterval] the end of the process, with [SyncAlways] the loss of
// power as well.
package nats
