// Package access says who a token belongs to: the one way in which whoever comes to
// the hub over HTTP or gRPC proves who he is. It keeps hashes and no tokens.
package access
