// Package tier says what make test leaves to make test-full, which runs without -short.
package tier
