//go:build race

package e2e

// With the race detector a hub and a byte cost several times as much: what is large is tested without it.
const (
	ordinaryKills = 2
	burstChunks   = 1000
	longTextBytes = 225_000 // still more than a pi client may send
)
