//go:build !race

package e2e

const (
	// ordinaryKills is how many hubs the ordinary test kills.
	ordinaryKills = 20
	// burstChunks is the number of chunks of a burst; no two are equal.
	burstChunks = 5000
	// longTextBytes is the size of a long text: below the message limit of 1 MB that Parallax, ACP and REST
	// have.
	longTextBytes = 900_000
)
