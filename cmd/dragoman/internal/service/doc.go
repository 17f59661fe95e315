// Package service assembles a hub: journal, engine, dialects and listeners.
//
// [Start] reads the files that settings name, binds every address, recovers the journal and
// serves the listeners. Stop shuts all of it down; Reload applies settings that may change
// while the hub runs. Transports and dialects meet only in dialects.go.
package service
