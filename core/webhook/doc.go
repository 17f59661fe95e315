// Package webhook posts messages to addresses that clients name, and protects what the hub
// can reach from them. It knows nothing of what it posts.
//
// [Targets] says which addresses are allowed; they are checked when a client names one, and
// again when a connection is made, since a name may resolve to another address by then. A
// [Sender] has a queue that is bounded in bytes, and repeats what a target did not accept
// after 1, 5, 30 and 120 minutes. A target that does not answer delays no other.
package webhook
