package nats

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core/cluster"
)

// A second hub with the name of one that runs would take that one over, which would start again and
// take the second one over, and so on; and two servers of one name would share a vote. So it is
// refused while the first one answers. One that does not answer, such as a process that was killed
// or stopped, keeps nobody from starting: the fence protects the journal from it.

// askTime is how long the hub of that name has to answer.
const askTime = time.Second

// secondError reports that another hub of the name runs, and where.
func secondError(name, where string) error {
	return fmt.Errorf("another hub named %s is running (%s): stop that one, or give this one a name of its own (--hub-name)", name, where)
}

// refuseSecondServer returns an error if the server of a peer has the name of this hub. It is asked
// before the own server starts.
func refuseSecondServer(ctx context.Context, c *Cluster, name string) error {
	peers := slices.Clone(c.Peers)
	if own := c.own(); !slices.Contains(peers, own) {
		peers = append(peers, own)
	}
	greeted, err := c.greet(ctx, peers)
	for _, g := range greeted {
		if g.name == name {
			return secondError(name, g.at)
		}
	}
	return err
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
