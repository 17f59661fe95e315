package nats

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// replay calls each for every message of a stream that is there now, from a place on and
// oldest first, until it returns false. what names the stream in errors. The files of the
// embedded server are read themselves, which takes a tenth of the time.
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
	return replayAsked(ctx, stream, next, info.State.LastSeq, what, checked)
}

// replayAsked asks the server for the messages of a stream, from a place on.
func replayAsked(ctx context.Context, stream jetstream.Stream, next, last uint64, what string, each func(message) (more bool, err error)) error {
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
					return nil // what was there has grown too old meanwhile
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

// errSilent says that no message came for a while.
var errSilent = errors.New("no message came")

const (
	// beat is how often a server that has nothing says so: a client that hears nothing for
	// twice as long, in one wait, asks again.
	beat = time.Second
	// silence is how long nothing comes before it is asked whether anything will: longer
	// than that.
	silence = 3 * beat
)

// nextOf waits for the next message for as long as silence.
func nextOf(ctx context.Context, messages jetstream.MessagesContext) (jetstream.Msg, error) {
	within, cancel := context.WithTimeoutCause(ctx, silence, errSilent)
	defer cancel()
	m, err := messages.Next(jetstream.NextContext(within))
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		return nil, errSilent
	}
	return m, err
}
