package nats

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// systemUser may command the embedded servers of a cluster.
const systemUser = "system"

// Forget takes the server of a hub that is gone for good out of the embedded cluster: it no longer
// counts for its majorities, and another server gets what it kept, if there is one. What the hub has
// stored remains. Forget does nothing for an external server, or one that has left.
func (j *Journal) Forget(ctx context.Context, hub string) error {
	if j.server == nil || !j.clustered {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, forgetTime)
	defer cancel()
	conn, err := j.dial(ctx, "", nats.UserInfo(systemUser, j.password))
	if err != nil {
		return err
	}
	defer conn.Close()
	ask, err := json.Marshal(server.JSApiMetaServerRemoveRequest{Server: hub, Peer: peerID(hub)})
	if err != nil {
		return err
	}
	return j.Insist(ctx, func(ctx context.Context) error { return remove(ctx, conn, ask) })
}

// forgetTime bounds Forget: the server may have led the others, who elect another one then.
const forgetTime = 15 * time.Second

// remove asks the leader of the embedded servers to remove one.
func remove(ctx context.Context, conn *nats.Conn, ask []byte) error {
	answer, err := conn.RequestWithContext(ctx, server.JSApiRemoveServer, ask)
	if err != nil {
		return fmt.Errorf("asking the embedded NATS cluster to remove a server: %w", err)
	}
	var told struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &told); err != nil {
		return fmt.Errorf("reading an answer of the NATS server: %w", err)
	}
	const notMember = 10044
	if told.Error != nil && told.Error.ErrorCode != notMember {
		return fmt.Errorf("removing a server from the embedded NATS cluster: %w", told.Error)
	}
	return nil
}

// peerID returns how servers name the server of a hub in their votes. One that was started after the
// hub was gone knows it by this alone.
func peerID(hub string) string {
	const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	id := sha256.Sum256([]byte(hub))
	for i, b := range id[:8] {
		id[i] = letters[int(b)%len(letters)]
	}
	return string(id[:8])
}
