package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// keptTerms is the content of termsFile: what operators have set for agents.
type keptTerms struct {
	Agents map[core.AgentID]agentTerms `json:"agents"`
}

type agentTerms struct {
	MaxConcurrent       int   `json:"max_concurrent,omitempty"`
	HeartbeatIntervalMS int64 `json:"heartbeat_interval_ms,omitempty"`
}

const termsFile = "terms.json"

// termsIn reads what operators have set for agents from a data directory, and returns the
// function that writes it. Without a directory it is not kept.
func termsIn(dir string) (keep func(map[core.AgentID]hub.Terms) error, terms map[core.AgentID]hub.Terms, err error) {
	if dir == "" {
		return nil, nil, nil
	}
	path := filepath.Join(dir, termsFile)
	data, err := os.ReadFile(path)
	var kept keptTerms
	if err == nil {
		err = strictjson.Decode(data, strictjson.Limits{}, &kept)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("settings of agents: %s: %w; fix the file, or remove it and set them again", path, err)
	}
	terms = map[core.AgentID]hub.Terms{}
	for id, t := range kept.Agents {
		terms[id] = hub.Terms{MaxConcurrent: max(0, t.MaxConcurrent), Heartbeat: max(0, time.Duration(t.HeartbeatIntervalMS)*time.Millisecond)}
	}
	return func(all map[core.AgentID]hub.Terms) error { return writeTerms(path, all) }, terms, nil
}

// writeTerms replaces the file atomically, also if the power fails: a hub does not start
// with a broken one.
func writeTerms(path string, all map[core.AgentID]hub.Terms) error {
	kept := keptTerms{Agents: map[core.AgentID]agentTerms{}}
	for id, t := range all {
		kept.Agents[id] = agentTerms{t.MaxConcurrent, t.Heartbeat.Milliseconds()}
	}
	data, err := json.MarshalIndent(kept, "", "  ")
	if err != nil {
		return err
	}
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
