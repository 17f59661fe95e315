//go:build race

package e2e

// With the race detector every hub of a kill takes several times as long: most are made without it.
const ordinaryKills = 2
