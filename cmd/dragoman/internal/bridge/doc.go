// Package bridge carries the frames of a dialect between stdin and stdout and a remote hub,
// until every request has been answered.
package bridge
