package nats

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// Log is a core.RecordLog on JetStream: a stream beside that of the journal, on the
// same connection. It lives as long as its Journal.
type Log struct {
	journal *Journal
	stream  jetstream.Stream
	name    string
	subject string
}

var _ core.RecordLog = (*Log)(nil)

// Log returns the log of that name, one of Options.Logs, or nil.
func (j *Journal) Log(name string) *Log { return j.logs[name] }

// openLog makes the stream of a log when it is missing.
func (j *Journal) openLog(ctx context.Context, hub, name string, keep journal.Retention) (*Log, error) {
	l := &Log{journal: j, name: name, subject: hub + ".log." + name}
	var err error
	l.stream, err = j.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: hub + "-log-" + name, Description: "what the part " + name + " of a Dragoman hub has to know again",
		Subjects: []string{l.subject}, Storage: jetstream.FileStorage, Discard: jetstream.DiscardOld,
		MaxAge: keep.Age, MaxBytes: keep.Bytes,
	})
	if err != nil {
		return nil, fmt.Errorf("making the stream of the log %s: %w", name, err)
	}
	return l, nil
}

// Append implements core.RecordLog. Records share messages: each stands behind its
// length.
func (l *Log) Append(ctx context.Context, records ...[]byte) error {
	if err := core.CheckRecords(records); err != nil {
		return err
	}
	var data []byte
	for i, r := range records {
		data = append(binary.AppendUvarint(data, uint64(len(r))), r...)
		if len(data) < runBytes && i < len(records)-1 {
			continue
		}
		if _, err := l.journal.send(ctx, l.stream, &nats.Msg{Subject: l.subject, Data: data}); err != nil {
			return fmt.Errorf("writing to the log %s: %w", l.name, err)
		}
		data = nil
	}
	return nil
}

// Replay implements core.RecordLog.
func (l *Log) Replay(ctx context.Context, yield func(time.Time, []byte) bool) error {
	return replay(ctx, l.stream, "the log "+l.name, func(m jetstream.Msg, place *jetstream.MsgMetadata) (bool, error) {
		records, err := splitRecords(m.Data())
		if err != nil {
			return false, err
		}
		for _, r := range records {
			if !yield(place.Timestamp, r) {
				return false, nil
			}
		}
		return true, nil
	})
}

// splitRecords takes the records of a message apart.
func splitRecords(data []byte) (records [][]byte, err error) {
	for len(data) > 0 {
		n, size := binary.Uvarint(data)
		if size <= 0 || n > uint64(len(data)-size) {
			return nil, errors.New("a record is cut off")
		}
		end := size + int(n)
		records = append(records, data[size:end:end])
		data = data[end:]
	}
	return records, nil
}

// replay calls each for every message of a stream that is there now, oldest first,
// until it returns false. what names the stream in errors.
func replay(ctx context.Context, stream jetstream.Stream, what string, each func(m jetstream.Msg, place *jetstream.MsgMetadata) (more bool, err error)) error {
	info, err := stream.Info(ctx)
	if err != nil {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	if info.State.Msgs == 0 {
		return nil
	}
	reader, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
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
				if now.State.Msgs == 0 || now.State.FirstSeq > info.State.LastSeq {
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
		more, err := each(m, place)
		if err != nil {
			return fmt.Errorf("message %d of %s cannot be read (is it of another version, or of another program?): %w", place.Sequence.Stream, what, err)
		}
		if !more || place.NumPending == 0 || place.Sequence.Stream >= info.State.LastSeq {
			return nil
		}
	}
}

// errSilent says that no message came for a while.
var errSilent = errors.New("no message came")

const (
	// beat is how often a server that has nothing says so: a client that hears nothing for
	// twice as long, in one wait, asks anew.
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
