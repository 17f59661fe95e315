package cluster

import (
	"context"
	"fmt"
	"strconv"
)

// TakeIndex returns the index of the hub with that name: the one it had before, or else the
// lowest that is free. It stays that of the name for good, since it stands in the ids of tasks.
func TakeIndex(ctx context.Context, claims Claims, name string) (int, error) {
	if err := CheckName(name); err != nil {
		return 0, err
	}
	for i := 0; i <= MaxIndex; i++ {
		// First the name, then the index: whatever ends between the two is found again.
		had, err := claims.Claim(ctx, "hub."+name, strconv.Itoa(i), func(holder string) bool {
			n, err := strconv.Atoi(holder)
			return err != nil || n < i // it lost that one to another hub
		})
		if err != nil {
			return 0, fmt.Errorf("claiming an index for the hub %s: %w", name, err)
		}
		if i, err = strconv.Atoi(had); err != nil || i < 0 || i > MaxIndex {
			return 0, fmt.Errorf("the hub %s has the index %q", name, had)
		}
		holder, err := claims.Claim(ctx, "index."+strconv.Itoa(i), name, func(string) bool { return false })
		if err != nil {
			return 0, fmt.Errorf("claiming the index %d for the hub %s: %w", i, name, err)
		}
		if holder == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("all %d indexes belong to other hubs: start this one with one of their names (--hub-name)", MaxIndex+1)
}
