package nats

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core/cluster"
)

// A second hub with the name of one that runs would take that one over, which would start again and
// take the second one over, and so on; and two servers of one name would share a vote. So it is
// refused while the first one answers. One that does not answer, such as a process that was killed
// or stopped, keeps nobody from starting: the fence protects the journal from it.

const (
	// askTime is how long the hub of that name has to answer.
	askTime = time.Second
	// greetTime is how long the server at an address has to say its name.
	greetTime = 500 * time.Millisecond
	// greetingBytes is the longest greeting of a server.
	greetingBytes = 32 << 10
)

// secondError reports that another hub of the name runs, and where.
func secondError(name, where string) error {
	return fmt.Errorf("another hub named %s is running (%s): stop that one, or give this one a name of its own (--hub-name)", name, where)
}

// refuseSecondServer returns an error if the server of a peer has the name of this hub. It is asked
// before the own server starts.
func refuseSecondServer(ctx context.Context, c *Cluster, name string) error {
	encrypted, err := c.encryption()
	if err != nil {
		return err
	}
	peers := slices.Clone(c.Peers)
	if own := cmp.Or(c.Advertise, c.Listen); !slices.Contains(peers, own) {
		peers = append(peers, own)
	}
	found := make(chan string, len(peers))
	for _, p := range peers {
		go func() {
			at := ""
			if greeting(ctx, p, encrypted).Name == name {
				at = p
			}
			found <- at
		}()
	}
	at := ""
	for range peers {
		at = cmp.Or(at, <-found)
	}
	if at != "" {
		return secondError(name, at)
	}
	return nil
}

// encryption returns that of the connections between servers.
func (c *Cluster) encryption() (*tls.Config, error) {
	if c.TLS != nil {
		return c.TLS, nil
	}
	return tlsOf(c.Secret, func(string) {})
}

// greeted is what a server says of itself when another one connects.
type greeted struct {
	Name    string `json:"server_name"`
	Cluster string `json:"cluster"`
}

// greeting returns what the server at an address says when another one connects; nothing if nobody
// answers.
func greeting(ctx context.Context, at string, encrypted *tls.Config) (says greeted) {
	ctx, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	conn, err := (&tls.Dialer{Config: encrypted}).DialContext(ctx, "tcp", at)
	if err != nil {
		return greeted{}
	}
	defer conn.Close()
	if end, _ := ctx.Deadline(); conn.SetReadDeadline(end) != nil {
		return greeted{}
	}
	line, err := bufio.NewReaderSize(conn, greetingBytes).ReadSlice('\n')
	info, is := bytes.CutPrefix(line, []byte("INFO "))
	if err != nil || !is || json.Unmarshal(info, &says) != nil {
		return greeted{}
	}
	return says
}

// refuseSecond returns an error if a hub of the name answers on the bus of the cluster.
func (j *Journal) refuseSecond(ctx context.Context, name string) error {
	if j.bus == nil {
		return nil
	}
	asked, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	h, err := cluster.Present(asked, j.bus, name)
	if err != nil {
		return nil //nolint:nilerr // nobody answers
	}
	where := fmt.Sprintf("%s, since %s", h.Life(), h.Since.Format(time.RFC3339))
	if o, place, err := j.fences[0].lastOwner(ctx); err == nil && place > 0 && o.Life == h.Life() {
		where = fmt.Sprintf("%s, %s", h.Life(), o.At)
	}
	return secondError(name, where)
}
