package nats

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"
)

// The format of what is stored has a number, which each stream of a hub has in its metadata. A version that
// does not read a format refuses the stream: it would take what it cannot read for damage, and leave tasks out.
const (
	// storedFormat is the format in which this version stores.
	storedFormat = 1
	// readFormat is the latest format that this version reads. It rises a minor version before storedFormat
	// does: then the version before an upgrade can be gone back to, and hubs of both work together.
	readFormat = 1
)

// The metadata of a stream. Streams without are of versions before there was any, in format 1.
const (
	formatKey  = "dragoman.format"
	versionKey = "dragoman.version" // which has stored in this format first
)

// FormatError says that a stream has a format that this version does not read.
type FormatError struct {
	Stream string
	Format int    // of the stream
	Since  string // the version that has first stored in that format
	Own    string // this version
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("the journal has the format %d (stream %s), which dragoman %s has begun to store; this is %s, which reads up to format %d: use %[3]s or later, or a backup from before that version", e.Format, e.Stream, e.Since, e.Own, readFormat)
}

// readable returns an error if the metadata of a stream has a format that this version does not read. It
// returns the number of the format; 0 for none.
func readable(stream string, metadata map[string]string, own string) (int, error) {
	format, err := strconv.Atoi(metadata[formatKey])
	if metadata[formatKey] != "" && err != nil {
		return 0, fmt.Errorf("the format of the stream %s is %.40q, want a number", stream, metadata[formatKey])
	}
	if format > readFormat {
		return format, &FormatError{Stream: stream, Format: format, Since: metadata[versionKey], Own: own}
	}
	return format, nil
}

// metadata returns what a stream of this hub is to have as metadata, or an error if this version does not
// read it.
func (j *Journal) metadata(ctx context.Context, stream string) (map[string]string, error) {
	own := map[string]string{formatKey: strconv.Itoa(storedFormat), versionKey: j.version}
	s, err := j.js.Stream(ctx, stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return own, nil
	}
	if err != nil {
		return nil, err
	}
	had := s.CachedInfo().Config.Metadata
	format, err := readable(stream, had, j.version)
	if format >= storedFormat {
		own = map[string]string{formatKey: had[formatKey], versionKey: had[versionKey]}
	}
	return own, err
}
