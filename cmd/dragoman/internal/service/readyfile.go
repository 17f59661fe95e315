package service

import (
	"context"
	"encoding/json"
	"os"
	"time"
)

// WriteReady tells whoever waits for it where the process listens. The file
// appears whole.
func WriteReady(path string, bound Addresses) error {
	if path == "" {
		return nil
	}
	data, err := json.Marshal(bound)
	if err != nil {
		return err
	}
	temp := path + ".tmp"
	if err := os.WriteFile(temp, append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

// Addresses are what a service listens on, as --ready-file has them.
type Addresses struct {
	GRPC string `json:"grpc,omitempty"`
	HTTP string `json:"http,omitempty"`
	Pi   string `json:"pi,omitempty"`
	// PiSocket is the path of the Unix socket.
	PiSocket string `json:"pi_socket,omitempty"`
}

// AwaitReady waits until a child has written its ready file.
func AwaitReady(ctx context.Context, path string) (a Addresses, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // a crowd takes a while
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		b, err := os.ReadFile(path)
		if err == nil {
			return a, json.Unmarshal(b, &a)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return a, context.Cause(ctx)
		}
	}
}
