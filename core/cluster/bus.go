package cluster

import (
	"context"
	"errors"
)

// Bus carries messages between hubs. It may lose messages, and delivers those of one sender on
// one subject in order. All methods may be called concurrently. Subjects are tokens with dots
// between them, without wildcards; a Bus puts the prefix of its cluster before them.
type Bus interface {
	// Publish sends a message to all who subscribed to the subject. It does not wait for the
	// network, and keeps no data after it has returned.
	Publish(subject string, data []byte) error

	// Request sends a message and returns the first answer. It returns an error that wraps
	// ErrNobody at once if nobody subscribed to the subject, and the cause of ctx when it ends.
	Request(ctx context.Context, subject string, data []byte) ([]byte, error)

	// Subscribe calls handle for each message on the subject, one call at a time, until stop is
	// called. handle must not wait: it delays the messages behind, and one that is far behind
	// loses messages. The data is valid during the call. The reply is nil unless an answer is
	// wanted.
	Subscribe(subject string, handle func(data []byte, reply func([]byte))) (stop func(), err error)
}

// ErrNobody reports that nobody subscribed to the subject of a request.
var ErrNobody = errors.New("nobody answers")

// Claims is who has which name in the cluster, such as the id of an agent. It is consistent: of
// two hubs that claim one name, one gets it. All methods may wait for the network, until ctx ends.
type Claims interface {
	// Claim makes a value the holder of a name. If the name has another holder, it returns that
	// one, unless yields says that it no longer counts.
	Claim(ctx context.Context, name, value string, yields func(holder string) bool) (holder string, err error)

	// Holder returns the holder of a name, "" if it has none.
	Holder(ctx context.Context, name string) (string, error)

	// Release gives a name back, if the value holds it still.
	Release(ctx context.Context, name, value string) error

	// Watch calls all with the holders of all names that begin with a prefix, and then change with each
	// change, "" for a name that was given back. It returns when ctx ends, or if it may have missed
	// changes. Of changes of one name that come close together it may leave out all but the last. The
	// functions must not wait.
	Watch(ctx context.Context, prefix string, all func(holders map[string]string), change func(name, holder string)) error
}
