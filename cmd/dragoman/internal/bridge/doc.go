// Package bridge carries the frames of a dialect between stdin and stdout and a hub that
// runs elsewhere, until everything that was asked has been answered.
package bridge
