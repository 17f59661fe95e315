package e2e

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/crypto/ssh"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// signedMetadata is what a client of Coven sends with a call: its four keys (auth-facts, "SSH
// signature").
type signedMetadata map[string][]string

// signMetadata signs at a time with a nonce. algorithm is that of the key if it is "".
func signMetadata(t *testing.T, key ssh.Signer, at time.Time, nonce, algorithm string) signedMetadata {
	t.Helper()
	timestamp := strconv.FormatInt(at.Unix(), 10)
	signature, err := key.(ssh.AlgorithmSigner).SignWithAlgorithm(rand.Reader, []byte(timestamp+"|"+nonce), algorithm)
	if err != nil {
		t.Fatal(err)
	}
	return signedMetadata{
		"x-ssh-pubkey":    {strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey()))) + " user@host"},
		"x-ssh-signature": {base64.StdEncoding.EncodeToString(ssh.Marshal(*signature))}, "x-ssh-timestamp": {timestamp}, "x-ssh-nonce": {nonce},
	}
}

func newSigner(t *testing.T, key crypto.Signer, err error) ssh.Signer {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Every case of a signature, as it arrives in the metadata of calls, with the words of Coven's gateway.
func TestTheGRPCListenerJudgesSignaturesAsCovensGateway(t *testing.T) {
	ed, other := newSSHKey(t).Signer, newSSHKey(t).Signer
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ec := newSigner(t, ecKey, err)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	weak := newSigner(t, rsaKey, err)
	lines := ""
	for name, key := range map[string]ssh.Signer{"ed": ed, "ec": ec, "rsa": weak} {
		lines += `principal="` + name + `" ` + string(ssh.MarshalAuthorizedKey(key.PublicKey()))
	}
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	h := newTestHub(t, func(c *config.Config) {
		c.Auth.Tokens, c.Auth.SSHKeys, c.Auth.Registration = tokensFile(t, "alice"), path, "pending"
	})
	cc, err := grpcserver.Dial(t.Context(), h.service.Addresses().GRPC, grpcserver.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	call := func(m signedMetadata) (string, error) {
		me, err := wire.NewClientServiceClient(cc).GetMe(metadata.NewOutgoingContext(t.Context(), metadata.MD(m)), nil)
		return me.GetPrincipalId(), err
	}
	good := func() signedMetadata { return signMetadata(t, ed, time.Now(), rand.Text(), "") }
	admitted := func(name string, m signedMetadata, want string) {
		t.Helper()
		if who, err := call(m); who != want || err != nil {
			t.Errorf("%s: got %q, %v, want %s", name, who, err, want)
		}
	}
	refused := func(name string, m signedMetadata, code codes.Code, want string) {
		t.Helper()
		if who, err := call(m); status.Code(err) != code || !strings.HasPrefix(status.Convert(err).Message(), want) {
			t.Errorf("%s: got %q, %v, want %s with %q", name, who, err, code, want)
		}
		m["authorization"] = []string{"Bearer alice"} // what stands beside it changes nothing
		if who, err := call(m); status.Code(err) != code {
			t.Errorf("%s, beside a good token: got %q, %v, want %s", name, who, err, code)
		}
	}
	admitted("ed25519", good(), "ed") // a connection with refused calls alone would be closed
	for field, word := range map[string]string{"x-ssh-pubkey": "public key", "x-ssh-signature": "signature", "x-ssh-timestamp": "timestamp", "x-ssh-nonce": "nonce"} {
		m := good()
		delete(m, field)
		refused("without "+field, m, codes.Unauthenticated, "missing SSH "+word)
		m = good()
		m[field] = append(m[field], m[field][0])
		refused("doubled "+field, m, codes.Unauthenticated, "SSH auth failed: the "+word+" is given 2 times")
		m = good()
		m[field] = []string{"wrong"}
		refused("wrong "+field, m, codes.Unauthenticated, "SSH auth failed: ")
	}
	foreign := good()
	foreign["x-ssh-signature"] = signMetadata(t, other, time.Now(), foreign["x-ssh-nonce"][0], "")["x-ssh-signature"]
	refused("signed by another key", foreign, codes.Unauthenticated, "SSH auth failed: signature verification failed")
	refused("301 s old", signMetadata(t, ed, time.Now().Add(-301*time.Second), rand.Text(), ""), codes.Unauthenticated, "SSH auth failed: signature expired")
	refused("62 s ahead", signMetadata(t, ed, time.Now().Add(62*time.Second), rand.Text(), ""), codes.Unauthenticated, "SSH auth failed: timestamp is in the future")
	refused("RSA with SHA-1", signMetadata(t, weak, time.Now(), rand.Text(), ssh.KeyAlgoRSA), codes.Unauthenticated, "SSH auth failed: the signature is RSA with SHA-1")
	refused("an unknown key", signMetadata(t, other, time.Now(), rand.Text(), ""), codes.PermissionDenied, "agent registered with pending status (principal_id: agent-")
	refused("an unknown key again", signMetadata(t, other, time.Now(), rand.Text(), ""), codes.PermissionDenied, "principal status is pending")

	admitted("ECDSA", signMetadata(t, ec, time.Now(), rand.Text(), ""), "ec")
	admitted("RSA with SHA-256", signMetadata(t, weak, time.Now(), rand.Text(), ssh.KeyAlgoRSASHA256), "rsa")
	admitted("RSA with SHA-512", signMetadata(t, weak, time.Now(), rand.Text(), ssh.KeyAlgoRSASHA512), "rsa")
	both := good()
	both["authorization"] = []string{"Bearer alice"}
	admitted("a signature beside a token", both, "ed")

	replayed := good()
	var in atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			switch _, err := call(replayed); {
			case err == nil:
				in.Add(1)
			case status.Convert(err).Message() != "SSH auth failed: nonce already used (possible replay attack)":
				t.Errorf("a replay: got %v, want it named", err)
			}
		})
	}
	if all.Wait(); in.Load() != 1 {
		t.Errorf("20 calls with one signature: got %d in, want 1", in.Load())
	}
}

// A connection lasts as long as its JWT, over a stream of gRPC and a WebSocket.
func TestAConnectionEndsWhenItsJWTExpires(t *testing.T) {
	tier.Full(t, "it waits until a token expires")
	idp := newIdentityProvider(t)
	h := newTestHub(t, func(c *config.Config) {
		c.Auth.JWT = config.Issuers{{Issuer: idp.url, Audience: "dragoman", JWKS: idp.url + "/keys"}}
	})
	cc, err := grpcserver.Dial(t.Context(), h.service.Addresses().GRPC, grpcserver.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	token := idp.token(t, jwt.SigningMethodES256, idp.ecdsa, "ec", idp.url, "emma", 3*time.Second)
	stream, err := wire.NewCovenControlClient(cc).AgentStream(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token))
	if err == nil {
		err = stream.Send(&wire.AgentMessage{Payload: &wire.AgentMessage_Register{Register: &wire.RegisterAgent{AgentId: "emma", Name: "emma"}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatalf("before it expires: got %v, want Welcome", err)
	}
	conn, _, err := websocket.Dial(ctx, "ws://"+h.service.Addresses().HTTP+service.NativePath, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	for err = nil; err == nil; {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "Token has expired") {
		t.Errorf("the stream: got %v, want it ended with its token", err)
	}
	for err = nil; err == nil; {
		_, _, err = conn.Read(ctx)
	}
	if ctx.Err() != nil {
		t.Error("the WebSocket: got it open still, want it ended with its token")
	}
	if _, err := wire.NewClientServiceClient(cc).GetMe(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token), nil); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a later call: got %v, want it refused", err)
	}
}
