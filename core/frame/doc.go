// Package frame keeps the latest frames of connections, with the tasks that they belong to and
// what became of each, for people who look at two dialects side by side.
//
// A [Book] has a [Ring] for each connection. The link of the connection tells the Ring of each
// message that it receives and queues; the session of the hub tells it which command or event the
// message is. A [Turn] says it for an agent whose connection has no session, and an [Exchange] is a
// request over HTTP with its answer. What belongs to no task is not kept. A nil Book makes nil Rings, whose methods do
// nothing: a hub that keeps no frames pays a nil check.
package frame
