// Package rpc lets engines that work as one ask and tell each other by name: a [Method] has an answer at each, a
// [News] a listener, and a service a connection.
//
// A [Node] is that of one engine. What is asked and told passes over [Peers], which only a cluster has: alone, a
// Node asks nobody.
package rpc
