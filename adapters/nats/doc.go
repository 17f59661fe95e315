// Package nats keeps the journal on NATS JetStream: on a server embedded in this
// process, or on an external one.
//
// Tasks that began within the same 4 seconds share a subject of one stream, and their
// records that are written together share a message. Usage records have a stream of
// their own, and so has each [Log]. The sync policy decides what an acknowledged write
// survives: with [SyncInterval] the end of the process, with [SyncAlways] the loss of
// power as well.
//
// Each stream has one writer, a life of its hub. It stores a message on the condition that
// the stream is where it left it; whoever takes the stream over moves it. Other hubs of a
// [Cluster] read the streams of this one from any replica, talk over a [Bus], and agree on
// names by [Claims]. Embedded servers of a cluster keep each stream three times; that of a
// hub is led by the server of another hub.
package nats
