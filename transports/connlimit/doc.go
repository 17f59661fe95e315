// Package connlimit counts the connections of a listener.
//
// A [Limiter] has two bounds: how many connections are open, and how many of them may not have authenticated. Those have a
// bounded time, and beyond the bound the oldest of them is closed: a client needs it for a moment only, one that
// does nothing loses it, and neither locks anybody out.
package connlimit
