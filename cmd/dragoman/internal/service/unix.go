package service

import (
	"fmt"
	"os"
	"os/user"
	"strconv"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/transports/stdio"
)

// unixUsers are the users who may connect over the Unix socket: the one that runs the hub, who
// could read its files and end it anyway, and so is an operator.
func (s *Service) unixUsers() []auth.UnixUser {
	if s.config.PiSocket == "" {
		return nil
	}
	uid := os.Geteuid()
	return []auth.UnixUser{{UID: uint32(uid), Principal: nameOf(uid), Operator: true}}
}

// nameOf returns the name of a user of this machine, or uid-N if it has none that a principal may have.
func nameOf(uid int) string {
	id := strconv.Itoa(uid)
	if u, err := user.LookupId(id); err == nil && auth.CheckPrincipal(u.Username) == nil {
		return u.Username
	}
	return "uid-" + id
}

// admitUser authenticates the user at the other end of the Unix socket. On an open hub its mode
// decides alone who may connect, and all are operators.
func (s *Service) admitUser(conn *stdio.Conn) (core.Principal, error) {
	if s.auth.Open() {
		p := core.Principal{Operator: true}
		s.came(p, pi.Name, "unix socket", nil)
		return p, nil
	}
	var p core.Principal
	from, err := "an unknown user", error(core.NewFault(core.CodeUnauthenticated, "this system does not tell who is at the other end of a Unix socket: connect with a token over WebSocket"))
	if uid, known := conn.PeerUID(); known {
		from = fmt.Sprintf("uid %d", uid)
		p, err = s.auth.Authenticate(s.ctx, auth.Credentials{Unix: &auth.UnixPeer{UID: uid}})
	}
	s.came(p, pi.Name, from, err)
	if err != nil {
		s.hub.Count("auth.refused")
		s.log.Info("a connection to the Unix socket was refused", "user", from, "detail", core.AsFault(err).Message)
	}
	return p, err
}
