package nats

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// replay calls each for every message that a stream has now, from a place on and oldest
// first, until it returns false. what names the stream in errors. It reads the files of the
// embedded server directly, which takes a tenth of the time.
func (j *Journal) replay(ctx context.Context, stream jetstream.Stream, from uint64, what string, each func(message) (more bool, err error)) error {
	info, err := stream.Info(ctx)
	if err != nil {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	if info.State.Msgs == 0 {
		return nil
	}
	checked := func(m message) (bool, error) {
		more, err := each(m)
		if err != nil {
			err = fmt.Errorf("message %d of %s cannot be read (is it of another version, or of another program?): %w", m.place, what, err)
		}
		return more, err
	}
	next := max(from, info.State.FirstSeq)
	if j.dir != "" {
		var more bool
		if next, more, err = replayFiles(filepath.Join(j.dir, info.Config.Name), next, info.State.LastSeq, checked); err != nil || !more {
			return err
		}
		switch _, err := stream.GetMsg(ctx, next, jetstream.WithGetMsgSubject(">")); {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return nil
		case err != nil:
			return fmt.Errorf("reading %s: %w", what, err)
		}
	}
	return replayFromServer(ctx, stream, next, info.State.LastSeq, what, checked)
}

// replayFromServer is replay by requests to the server.
func replayFromServer(ctx context.Context, stream jetstream.Stream, next, last uint64, what string, each func(message) (more bool, err error)) error {
	config := jetstream.OrderedConsumerConfig{}
	if next > 1 {
		config = jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: next}
	}
	reader, err := stream.OrderedConsumer(ctx, config)
	if err != nil {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	messages, err := reader.Messages(jetstream.PullHeartbeat(beat))
	if err != nil {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	defer messages.Stop()
	for {
		m, err := nextOf(ctx, messages)
		if errors.Is(err, errSilent) {
			var now *jetstream.StreamInfo
			if now, err = stream.Info(ctx); err == nil {
				if now.State.Msgs == 0 || now.State.FirstSeq > last {
					return nil // retention dropped the messages meanwhile
				}
				continue
			}
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", what, err)
		}
		place, err := m.Metadata()
		if err != nil {
			return fmt.Errorf("reading %s: %w", what, err)
		}
		more, err := each(message{place: place.Sequence.Stream, at: place.Timestamp, subject: m.Subject(), header: m.Headers(), data: m.Data()})
		if err != nil || !more || place.NumPending == 0 || place.Sequence.Stream >= last {
			return err
		}
	}
}

// errSilent reports that no message came for the time of silence.
var errSilent = errors.New("no message came")

const (
	// beat is the interval of the heartbeats of a server without messages. The library
	// asks again after two intervals without one.
	beat = time.Second
	// silence is how long to wait for a message before asking whether there is any: longer
	// than the library takes to ask again.
	silence = 3 * beat
)

// nextOf returns the next message, or errSilent after the time of silence.
func nextOf(ctx context.Context, messages jetstream.MessagesContext) (jetstream.Msg, error) {
	within, cancel := context.WithTimeoutCause(ctx, silence, errSilent)
	defer cancel()
	m, err := messages.Next(jetstream.NextContext(within))
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		return nil, errSilent
	}
	return m, err
}
