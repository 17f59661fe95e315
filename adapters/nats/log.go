package nats

import (
	"bytes"
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

// Log is a core.RecordLog on JetStream: a stream of its own, on the connection of its
// Journal, with which it ends.
type Log struct {
	*fence
	name    string
	subject string
}

var _ core.RecordLog = (*Log)(nil)

// Log returns the log of Options.Logs with that name, or nil.
func (j *Journal) Log(name string) *Log { return j.logs[name] }

// openLog makes the stream of a log if it is missing.
func (j *Journal) openLog(ctx context.Context, hub, name string, keep journal.Retention) (*Log, error) {
	l := &Log{name: name, subject: hub + ".log." + name}
	var err error
	l.fence, err = j.openStream(ctx, jetstream.StreamConfig{
		Name: hub + "-log-" + name, Description: "what the part " + name + " of a Dragoman hub has to know again",
		Subjects: []string{l.subject, l.subject + ownSuffix}, MaxAge: keep.Age, MaxBytes: keep.Bytes,
	})
	if err != nil {
		return nil, fmt.Errorf("making the stream of the log %s: %w", name, err)
	}
	return l, nil
}

// Append implements core.RecordLog. Records share messages; each follows its length.
func (l *Log) Append(ctx context.Context, records ...[]byte) error {
	if err := core.CheckRecords(records); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var data []byte
	for i, r := range records {
		data = append(binary.AppendUvarint(data, uint64(len(r))), r...)
		if len(data) < runBytes && i < len(records)-1 {
			continue
		}
		if err := l.append(ctx, &nats.Msg{Subject: l.subject, Data: data}); err != nil {
			return fmt.Errorf("writing to the log %s: %w", l.name, err)
		}
		data = nil
	}
	return nil
}

// Replay implements core.RecordLog.
func (l *Log) Replay(ctx context.Context, yield func(time.Time, []byte) bool) error {
	return l.replay(ctx, 1, "the log "+l.name, func(m message) (bool, error) {
		if m.owner {
			return true, nil
		}
		records, err := splitRecords(bytes.Clone(m.data)) // yield may keep them
		if err != nil {
			return false, err
		}
		for _, r := range records {
			if !yield(m.at, r) {
				return false, nil
			}
		}
		return true, nil
	})
}

// splitRecords returns the records of a message.
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
