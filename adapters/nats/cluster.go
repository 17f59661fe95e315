package nats

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Cluster says how several hubs work together: on an external server, for which the name
// suffices, or on their embedded servers.
type Cluster struct {
	// Name is the same for all hubs: letters, digits, dashes and underscores.
	Name string
	// Listen is the address at which the embedded server takes the connections of others.
	Listen string
	// Peers are the addresses of the servers of all hubs, with or without the own one.
	Peers []string
	// Advertise is the address told to others, if that is not Listen.
	Advertise string
	// Secret proves that a hub belongs to the cluster. All have the same.
	Secret string
	// TLS encrypts the connections between embedded servers; nil makes certificates of the
	// secret, which nobody has who does not know it.
	TLS *tls.Config
}

// replicasOfCluster is on how many embedded servers a stream is kept.
const replicasOfCluster = 3

// check returns what is wrong with the settings for an embedded server.
func (c *Cluster) check() error {
	if !isName(c.Name) {
		return fmt.Errorf("the name %q of the cluster may have letters, digits, dashes and underscores only", c.Name)
	}
	return nil
}

// join makes the options of an embedded server those of a member of the cluster.
func (c *Cluster) join(o *server.Options, hub string) error {
	host, port, err := splitAddress(c.Listen)
	if err != nil {
		return fmt.Errorf("the address of the cluster: %w", err)
	}
	if c.Secret == "" {
		return errors.New("the cluster has no secret: without one anybody could join")
	}
	const user = "hub"
	// The server connects to others only if it listens for clients too. It admits none there: its users are
	// for connections within the process. Without a NoAuthUser it would make one of its own, who may do
	// everything (nats-server, configureAccounts).
	o.DontListen, o.Host, o.Port = false, "127.0.0.1", server.RANDOM_PORT
	password, system := rand.Text(), server.NewAccount(server.DEFAULT_SYSTEM_ACCOUNT)
	inProcess := map[string]struct{}{jwt.ConnectionTypeInProcess: {}}
	o.Users = []*server.User{
		{Username: user, Password: password, AllowedConnectionTypes: inProcess},
		{Username: systemUser, Password: password, Account: system, AllowedConnectionTypes: inProcess},
	}
	o.NoAuthUser = user
	o.ServerName, o.NoSystemAccount = hub, false // a clustered JetStream needs the account
	o.Accounts, o.SystemAccount = []*server.Account{system}, system.Name
	// It tries to reach an absent one each second, and logs the first try of a minute.
	o.ConnectErrorReports, o.ReconnectErrorReports = triesOfMinute, triesOfMinute
	o.Cluster = server.ClusterOpts{
		Name: c.Name, Host: host, Port: port, Advertise: c.Advertise, Username: user, Password: c.Secret,
		TLSConfig: c.TLS, TLSTimeout: routeTimeout.Seconds(), AuthTimeout: 2 * routeTimeout.Seconds(), PoolSize: -1,
		PingInterval: busPing, MaxPingsOut: 2,
	}
	if c.TLS == nil {
		if o.Cluster.TLSConfig, err = tlsOf(c.Secret); err != nil {
			return err
		}
	}
	peers := slices.Clone(c.Peers)
	if own := c.own(); len(peers) < replicasOfCluster && !slices.Contains(peers, own) {
		peers = append(peers, own) // the server takes their number for the size of the cluster
	}
	for _, p := range peers {
		if _, _, err := splitAddress(p); err != nil {
			return fmt.Errorf("the address of a peer: %w", err)
		}
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats-route", User: url.UserPassword(user, c.Secret), Host: p})
	}
	return nil
}

// triesOfMinute is how often a server tries to reach another one within a minute.
const triesOfMinute = 60

// routeTimeout bounds the TLS handshake of a connection between servers.
const routeTimeout = 5 * time.Second

func splitAddress(at string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(at)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err == nil && port == 0 {
		port = -1 // any
	}
	return host, port, err
}

// firstTry bounds the first try of [Journal.Insist]: a cluster may not answer while it has no leader, and loses
// answers while it forms.
const firstTry = 500 * time.Millisecond

// Insist repeats what a cluster cannot do for a moment, as during an election, until ctx ends. It returns
// any other error at once; without a cluster it calls do once.
func (j *Journal) Insist(ctx context.Context, do func(context.Context) error) error {
	if !j.clustered {
		return do(ctx)
	}
	_, err := retry(ctx, j, firstTry, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}

// IsTemporary implements journal.Replicated.
func (j *Journal) IsTemporary(err error) bool { return j.clustered && isTemporary(err) }

// isTemporary reports whether an error is one of a cluster without a leader or enough servers.
func isTemporary(err error) bool {
	const noPeers, notReplicated = 10005, 10074
	var refused *jetstream.APIError
	if errors.As(err, &refused) {
		return refused.Code == 503 || refused.ErrorCode == noPeers || refused.ErrorCode == notReplicated || refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant
	}
	for _, temporary := range []error{errNotHeard, errNewLeader, errNoAnswer, context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, jetstream.ErrNoStreamResponse} {
		if errors.Is(err, temporary) {
			return true
		}
	}
	return false
}

// errNotHeard is that of a server which has not heard of a stream, as one that has just come to lead the
// cluster.
var errNotHeard = errors.New("a NATS server has not heard of the stream yet")

// made replaces the error that a stream is missing if the hub has made it at its start.
func (j *Journal) made(stream string, err error) error {
	if j.clustered && errors.Is(err, jetstream.ErrStreamNotFound) && slices.ContainsFunc(j.fences, func(f *fence) bool { return f.stream == stream }) {
		return fmt.Errorf("%w: %v", errNotHeard, err) //nolint:errorlint // which is not temporary
	}
	return err
}

// leaderCheck is the time between two checks who leads the streams of the hub.
const leaderCheck = 2 * time.Second

// lendLeadership gives the streams of the hub to the servers of other hubs to lead. The election of a new leader takes
// seconds: when this hub dies, others must not wait for one before they take over its tasks.
func (j *Journal) lendLeadership(ctx context.Context) {
	for _, f := range j.fences {
		if j.server.JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, f.stream) {
			if err := f.stepDown(ctx); err != nil && ctx.Err() == nil {
				j.log.Debug("giving away a stream to lead", "stream", f.stream, "error", err)
			}
		}
	}
}

// stepDown makes the server of the next hub, by name, the leader of the stream.
func (f *fence) stepDown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	s, err := f.j.js.Stream(ctx, f.stream)
	if err != nil {
		return err
	}
	now := s.CachedInfo().Cluster
	if now == nil || now.Leader != f.j.server.Name() {
		return nil
	}
	var others []string
	for _, r := range now.Replicas {
		if r.Current && !r.Offline && !f.j.unheard.has(r.Name) {
			others = append(others, r.Name)
		}
	}
	if len(others) == 0 {
		return nil
	}
	slices.Sort(others)
	next := others[0]
	for _, o := range others {
		if o > now.Leader {
			next = o
			break
		}
	}
	var ask struct {
		Placement struct {
			Preferred string `json:"preferred"`
		} `json:"placement"`
	}
	ask.Placement.Preferred = next
	data, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	answer, err := f.j.conn.RequestWithContext(ctx, jetstream.DefaultAPIPrefix+"STREAM.LEADER.STEPDOWN."+f.stream, data)
	if err != nil {
		return err
	}
	var told struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &told); err != nil || told.Error == nil {
		return err
	}
	return told.Error
}

// isName reports whether a name can be a part of subjects and of the names of streams.
func isName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '-' && r != '_'
	})
}
