package nats

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// Log is a core.RecordLog on JetStream: a stream of its own, on the connection of its
// Journal, with which it ends.
type Log struct {
	*fence
	name string
}

var _ core.RecordLog = (*Log)(nil)

// Log returns the log of Options.Logs with that name, or nil.
func (j *Journal) Log(name string) *Log { return j.logs[name] }

// openLog makes the stream of a log if it is missing.
func (j *Journal) openLog(ctx context.Context, hub, name string, keep journal.Retention) (*Log, error) {
	f, err := j.openStream(ctx, hub+"-log-"+name, "what the part "+name+" of a Dragoman hub has to know again", keep, hub+".log."+name)
	return &Log{f, name}, err
}

// Append implements core.RecordLog. Records share messages; each follows its length.
func (l *Log) Append(ctx context.Context, records ...[]byte) error {
	if err := core.CheckRecords(records); err != nil {
		return err
	}
	err := l.appendJoined(ctx, len(records), func(data []byte, i int) ([]byte, error) {
		return append(binary.AppendUvarint(data, uint64(len(records[i]))), records[i]...), nil
	})
	if err != nil {
		return fmt.Errorf("writing to the log %s: %w", l.name, err)
	}
	return nil
}

// Replay implements core.RecordLog.
func (l *Log) Replay(ctx context.Context, yield func(time.Time, []byte) bool) error {
	for m, err := range l.replay(ctx, getRequest{Seq: 1}, 0, nil) {
		if err != nil {
			return err
		}
		records, err := splitRecords(m.data)
		if err != nil {
			return l.unreadable(m, err)
		}
		for _, r := range records {
			if !yield(m.at, r) {
				return nil
			}
		}
	}
	return nil
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
