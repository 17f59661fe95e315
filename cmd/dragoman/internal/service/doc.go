// Package service puts a hub together and takes it down: journal, engine, dialects and
// listeners.
//
// [Start] reads the files that settings name, binds every address, recovers the journal
// and opens the listeners; Stop ends all of it in good order; Reload takes over what can
// change meanwhile. dialects.go is the one place where transports and dialects meet.
package service
