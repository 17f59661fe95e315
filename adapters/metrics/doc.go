// Package metrics exports the state of the hub to Prometheus. It stores nothing: each scrape
// reads the hub. Besides the hub's own metrics there are those that the Parallax
// documentation lists.
package metrics
