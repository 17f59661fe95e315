package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Running is a hub of this user that runs on this machine.
type Running struct {
	PID int `json:"pid"`
	// Dir is its working directory, File the settings file that it reads, or would read.
	Dir  string `json:"dir"`
	File string `json:"file"`
	// URL is where it is reached over HTTP on this machine; "" before it is ready, and for one without.
	URL string `json:"url,omitempty"`
}

const runningName = "hub.json"

// runningDir is where the hubs of this user that run have a directory each, which they hold locked.
func runningDir() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "dragoman", "hubs"), err
}

// Announce tells other processes of this user that this process is a hub which reads a settings file, until gone is
// called or the process ends, and by at where it is reached.
func Announce(file string) (at func(url string) error, gone func(), err error) {
	r := Running{PID: os.Getpid()}
	above, err := runningDir()
	if err == nil {
		r.Dir, err = os.Getwd()
	}
	if err == nil {
		r.File, err = filepath.Abs(file)
	}
	if err != nil {
		return nil, nil, err
	}
	dir := filepath.Join(above, strconv.Itoa(r.PID))
	held, err := lockDir(dir)
	if err != nil {
		return nil, nil, err
	}
	at = func(url string) error {
		r.URL = url
		data, err := json.Marshal(r)
		if err == nil {
			err = replaceFile(filepath.Join(dir, runningName), data)
		}
		return err
	}
	gone = func() {
		_ = os.Remove(filepath.Join(dir, runningName))
		held.Close()
		_ = os.RemoveAll(dir)
	}
	if err := at(""); err != nil {
		gone()
		return nil, nil, err
	}
	return at, gone, nil
}

// RunningHubs returns the hubs of this user that run, and removes what killed ones have left.
func RunningHubs() (all []Running, err error) {
	above, err := runningDir()
	if err != nil {
		return nil, nil //nolint:nilerr // a user without a home has announced none
	}
	dirs, err := filepath.Glob(filepath.Join(above, "*"))
	for _, dir := range dirs {
		held, err := lockDir(dir)
		if err == nil {
			held.Close()
			_ = os.RemoveAll(dir)
			continue
		}
		if !errors.Is(err, errTaken) {
			return nil, fmt.Errorf("the hubs that run: %w", err)
		}
		var r Running
		data, err := os.ReadFile(filepath.Join(dir, runningName))
		if err == nil && json.Unmarshal(data, &r) == nil { // else it starts, or stops
			all = append(all, r)
		}
	}
	return all, err
}
