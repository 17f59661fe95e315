// Package acptest has a peer of ACP that asks, for tests. The package opens no socket.
package acptest
