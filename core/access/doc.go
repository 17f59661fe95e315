// Package access authenticates the clients of HTTP and gRPC by tokens. It keeps only hashes
// of tokens.
package access
