//go:build !race

package e2e

// ordinaryKills is how many hubs the ordinary test kills.
const ordinaryKills = 20
