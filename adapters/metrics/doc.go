// Package metrics tells Prometheus what the hub knows of itself. It keeps nothing:
// each scrape reads the hub. The names that the page of Parallax lists stand beside
// those of the hub's own.
package metrics
