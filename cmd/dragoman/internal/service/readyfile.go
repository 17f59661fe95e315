package service

import (
	"encoding/json"
	"errors"
	"os"
)

// WriteReady writes the addresses that a process listens on to a file. The file appears
// whole.
func WriteReady(path string, bound Addresses) error {
	if path == "" {
		return nil
	}
	data, err := json.Marshal(bound)
	if err != nil {
		return err
	}
	return replaceFile(path, data)
}

// replaceFile replaces a file by a line of data, atomically even if the power fails.
func replaceFile(path string, data []byte) error {
	temp := path + ".tmp"
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
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
