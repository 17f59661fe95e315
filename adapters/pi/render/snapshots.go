package render

import "github.com/dragoman-hub/dragoman/core"

// Snapshots selects whether updates repeat the whole message so far. The zero value means
// SnapshotsAll.
type Snapshots uint8

// The ways to update an incomplete message.
const (
	_ Snapshots = iota
	// SnapshotsAll repeats the message in every update, and sends as many updates as
	// are worth their bytes.
	SnapshotsAll
	// SnapshotsNone sends every delta immediately, without the message.
	SnapshotsNone
)

// ParseSnapshots parses the parameter snapshots of a client's address: all, none or empty.
// It returns an invalid Fault for anything else.
func ParseSnapshots(text string) (Snapshots, error) {
	switch text {
	case "", "all":
		return SnapshotsAll, nil
	case "none":
		return SnapshotsNone, nil
	}
	return 0, core.NewFault(core.CodeInvalid, "snapshots=%q is not known: ask for all or none", text)
}
