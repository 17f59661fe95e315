package auth

import (
	"crypto/x509"
	"encoding/base64"
	"slices"
	"strings"
)

// Credentials are what a connection presents, before any body is read. The zero Credentials
// are those of a connection that presents nothing.
type Credentials struct {
	// Certificates is the verified chain of a TLS client, leaf first.
	Certificates []*x509.Certificate
	// SSH are the fields of an SSH signature.
	SSH SSHFields
	// Authorization and APIKey are all values of Authorization and X-API-Key.
	Authorization, APIKey []string
	// Subprotocols are the subprotocols that a WebSocket client offers; see [TokenPrefix].
	Subprotocols []string
	// Bare takes a token in Authorization without a scheme too, as pi-server does. Without it
	// only tokens that begin with "plx_" may be bare.
	Bare bool
	// Unix is the peer of a Unix socket as the kernel knows it (SO_PEERCRED).
	Unix *UnixPeer
}

// SSHFields are all values of the four metadata keys of an SSH signature (auth-facts, "SSH
// signature").
type SSHFields struct {
	Key, Signature, Timestamp, Nonce []string
}

// UnixPeer is the process at the other end of a Unix socket.
type UnixPeer struct{ UID uint32 }

// Presented returns the credentials in the headers of a request or the metadata of a call.
// values returns all values of a header, whose name may be in any case, as
// http.Header.Values and metadata.MD.Get do.
func Presented(values func(name string) []string) Credentials {
	return Credentials{
		Authorization: values("Authorization"), APIKey: values("X-API-Key"), Subprotocols: values("Sec-WebSocket-Protocol"),
		SSH: SSHFields{
			Key: values("X-SSH-Pubkey"), Signature: values("X-SSH-Signature"), Timestamp: values("X-SSH-Timestamp"), Nonce: values("X-SSH-Nonce"),
		},
	}
}

// TokenPrefix begins the subprotocol that carries a token, as base64url without padding. A
// browser cannot send headers with a WebSocket.
const TokenPrefix = "dragoman.token."

// plainProtocol is the subprotocol that a client offers beside that of its token, if it does
// not want the token sent back.
const plainProtocol = "dragoman"

// Subprotocol returns the subprotocol to accept for a client that presents its token in one:
// "dragoman" if it offers that, else that of the token. It is "" if none carries a token.
func Subprotocol(offered []string) string {
	all := offeredProtocols(offered)
	i := slices.IndexFunc(all, isTokenProtocol)
	switch {
	case i < 0:
		return ""
	case slices.Contains(all, plainProtocol):
		return plainProtocol
	}
	return all[i]
}

// offeredProtocols splits the values of Sec-WebSocket-Protocol.
func offeredProtocols(values []string) (all []string) {
	for _, value := range values {
		for one := range strings.SplitSeq(value, ",") {
			all = append(all, strings.Trim(one, " \t"))
		}
	}
	return all
}

func isTokenProtocol(p string) bool { return strings.HasPrefix(p, TokenPrefix) }

// protocolTokens returns the tokens in the offered subprotocols; "" stands for one that cannot
// be read.
func protocolTokens(values []string) (tokens []string) {
	for _, value := range values {
		if !strings.Contains(value, TokenPrefix) {
			continue
		}
		for _, one := range offeredProtocols([]string{value}) {
			if isTokenProtocol(one) {
				token, err := base64.RawURLEncoding.Strict().DecodeString(one[len(TokenPrefix):])
				if err != nil {
					token = nil
				}
				tokens = append(tokens, string(token))
			}
		}
	}
	return tokens
}
