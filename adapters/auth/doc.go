// Package auth turns what a connection presents into a principal.
//
// An [Authenticator] judges [Credentials], which a transport collects before it reads a body:
//
//	given := auth.Presented(request.Header.Values)
//	given.Certificates = chain // of request.TLS
//	principal, err := authenticator.Authenticate(ctx, given)
//
// The order is fixed. The first credential that is present decides, and one that is wrong
// refuses: nothing falls through to the next.
//
//  1. A TLS client certificate.
//  2. An SSH signature, as the clients of Coven send it.
//  3. A token: Authorization, X-API-Key and the subprotocol of a browser's WebSocket. Those
//     that are present must be the same token. It is a token of the hub, found by its hash, or
//     a JWT of a known issuer.
//  4. The user at the other end of a Unix socket.
//
// What is valid comes from the [Settings], which [Authenticator.Apply] replaces at once. After
// that [Authenticator.Knows] tells for the principal of a session whether its credential is
// still valid. Unknown SSH keys may register; what becomes of them is kept in a
// [core.RecordLog].
//
// The package opens no socket, except that it fetches the key sets of issuers. No error, log
// line or principal contains a token, a signature, a nonce or a secret.
package auth
