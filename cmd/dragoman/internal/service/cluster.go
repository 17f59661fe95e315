package service

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/adapters/peer"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/edge"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/bus"
)

// checkCluster returns what is wrong with the settings of the cluster together.
func checkCluster(c config.Config) error {
	var errs []error
	wrong := func(key, text string) { errs = append(errs, fmt.Errorf("%s: %s", c.At(key), text)) }
	own := c.Cluster
	switch {
	case own.Listen != "":
		if why := cannotListen(c); why != "" {
			wrong("cluster.listen", why)
		}
	case len(own.Peers) > 0 && c.Journal.NATSURL == "":
		wrong("cluster.peers", "this hub takes no connections of other hubs: set cluster.listen, such as 10.0.0.1:6222")
	case len(own.Peers) > 0:
		wrong("cluster.peers", twoMeetings)
	}
	wrongAt := func(key, addr string) {
		if why := malformed(addr); why != "" {
			wrong(key, fmt.Sprintf("%s: %s; write it as host:port, such as 10.0.0.1:6222", addr, why))
		}
	}
	for _, at := range own.Peers {
		wrongAt("cluster.peers", at)
	}
	if own.Listen != "" {
		wrongAt("cluster.listen", own.Listen)
	}
	if own.Advertise != "" {
		wrongAt("cluster.advertise", own.Advertise)
	}
	if t := own.TLS; (t.Cert == "") != (t.Key == "") || (t.Cert == "") != (t.CA == "") {
		wrong("cluster.tls.cert", "set cluster.tls.cert, cluster.tls.key and cluster.tls.ca, or none of them")
	}
	if c.HubName != "" {
		if err := cluster.CheckName(c.HubName); err != nil {
			wrong("hub_name", err.Error())
		}
	}
	_, err := natsCluster(c)
	return errors.Join(append(errs, err)...)
}

// twoMeetings says that the settings have two places where the hubs of a cluster would meet.
const twoMeetings = "with journal.nats_url the hubs meet at that server: leave one of the two out"

// cannotListen says what a hub that takes connections of other hubs lacks; "" for nothing.
func cannotListen(c config.Config) string {
	switch {
	case c.HubName == "":
		return "a hub of a cluster needs a name of its own: set hub_name (--hub-name)"
	case c.Journal.NATSURL != "":
		return twoMeetings
	case c.DataDir == "":
		return "a hub of a cluster keeps its journal on disk: set data_dir (--data-dir)"
	case c.Cluster.SecretFile == "":
		return "anybody could join: set cluster.secret_file to a file with the secret that all hubs share"
	case len(c.Cluster.Peers) == 0:
		return "this hub would look for no other one, and wait for ever: set cluster.peers to the addresses of all hubs of the cluster"
	}
	return ""
}

// leastSecret is the length of the shortest secret of a cluster, in bytes.
const leastSecret = 16

// natsCluster returns how the journal works together with those of other hubs; nil for a hub
// alone.
func natsCluster(c config.Config) (*nats.Cluster, error) {
	if !c.Clustered() {
		return nil, nil //nolint:nilnil // a hub alone is no error
	}
	own := c.Cluster
	n := &nats.Cluster{Name: own.Name, Listen: own.Listen, Peers: own.Peers, Advertise: own.Advertise}
	if own.SecretFile != "" {
		secret, err := edge.ReadFile(own.SecretFile)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.At("cluster.secret_file"), err)
		}
		if secret = bytes.TrimSpace(secret); len(secret) < leastSecret {
			return nil, fmt.Errorf("%s: the secret has %d bytes, want at least %d: make one with openssl rand -hex 32", c.At("cluster.secret_file"), len(secret), leastSecret)
		}
		n.Secret = string(secret)
	}
	if own.TLS.Cert != "" {
		pair, err := client.ReadKeyPair(own.TLS.Cert, own.TLS.Key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.At("cluster.tls.cert"), err)
		}
		pem, err := edge.ReadFile(own.TLS.CA)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.At("cluster.tls.ca"), err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: there is no certificate in it", c.At("cluster.tls.ca"))
		}
		n.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13}
	}
	return n, nil
}

// knownTime is how long the journal has to tell of the other hubs: a part of it may have no leader.
const knownTime = 10 * time.Second

// openCluster makes the hub a member of its cluster, if it has one, and says that it starts. It takes
// part once [Service.joinCluster] is called.
func (s *Service) openCluster(ctx context.Context, o *hub.Options) error {
	j, ok := s.journal.(*nats.Journal)
	if !ok || j.Bus() == nil {
		return nil
	}
	life := j.Life()
	var index int
	err := j.Insist(ctx, func(ctx context.Context) error {
		wasAlone, err := j.HasTasks(ctx)
		if err == nil {
			index, err = cluster.TakeIndex(ctx, j.Claims(), s.config.HubName, wasAlone)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("joining the cluster: %w", err)
	}
	remembering, cancel := context.WithTimeout(ctx, knownTime)
	defer cancel()
	known, err := cluster.Known(remembering, j.Claims(), j.LifeOf)
	if err != nil { // the others tell it
		s.log.Warn("the journal does not tell of all hubs of the cluster", "error", err)
	}
	if s.node, err = bus.Listen(j.Bus(), bus.Life(life)); err != nil {
		return fmt.Errorf("joining the cluster: %w", err)
	}
	s.member, err = peer.NewMember(peer.MemberOptions{
		Settings: cluster.Settings{
			Index: index, Address: s.bound.forOthers(s.config), Bus: j.Bus(), Claims: j.Claims(), External: s.config.Journal.NATSURL != "", Known: known, Log: s.log,
			Tasks: func() int { return s.hub.Running() },
		},
		Journal: j, Keys: j.Keys(), Version: Version,
		Dial: func(l journal.Life) link.Conn[[]byte, []byte] { return s.node.Connect(bus.Life(l)) },
		Replace: func(ctx context.Context, hub string) {
			if err := j.ElectWithout(ctx, hub); err != nil && ctx.Err() == nil {
				s.log.Warn("the journal waits for the server of a hub that is not heard", "hub", hub, "error", err)
			}
		},
		Deposed: func(by journal.Life) { s.fail(fmt.Errorf("hub %s: %w by %s", life, journal.ErrFenced, by)) },
	})
	if err != nil {
		return err
	}
	s.member.Configure(o)
	o.Forget = s.forgetHub
	s.loops.Go(func() {
		if err := s.Cluster().Announce(s.ctx); err != nil {
			s.log.Warn("the other hubs are not told that this one starts", "error", err)
		}
	})
	return nil
}

// forgetHub says that a hub is gone for good, to the hubs and to the servers of the journal.
func (s *Service) forgetHub(ctx context.Context, name string) error {
	if err := s.Cluster().Forget(ctx, name); err != nil {
		return err
	}
	if err := s.journal.(*nats.Journal).Forget(ctx, name); err != nil {
		s.log.Error("the server of a hub that is gone still counts in the embedded NATS cluster", "hub", name, "error", err)
		f := core.NewFault(core.CodeUnreachable, "the hub %s no longer counts, but its embedded NATS server still does: try again", name).Because(err)
		f.Retryable = true
		return f
	}
	return nil
}

// joinCluster takes part in the cluster until leaveCluster.
func (s *Service) joinCluster() {
	if s.member == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.ctx))
	s.loops.Go(func() {
		if err := s.member.Run(ctx, s.hub); err != nil {
			s.fail(fmt.Errorf("taking part in the cluster: %w", err))
		}
	})
	if s.config.Auth.Required() {
		s.loops.Go(func() { s.learnPrincipals(ctx) })
	}
	s.leaveCluster = cancel
}

// Cluster returns what the hub knows of the others; nil for a hub alone.
func (s *Service) Cluster() *cluster.Cluster {
	if s.member == nil {
		return nil
	}
	return s.member.Cluster()
}
