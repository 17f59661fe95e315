package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/edge"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// settingsFile is the content of settingsName: the settings of agents.
type settingsFile struct {
	Agents map[core.AgentID]savedSettings `json:"agents"`
}

type savedSettings struct {
	MaxConcurrent       int    `json:"max_concurrent,omitempty"`
	HeartbeatIntervalMS int64  `json:"heartbeat_interval_ms,omitempty"`
	Changes             uint64 `json:"changes,omitempty"`
}

const settingsName = "terms.json"

// loadAgentSettings reads the settings of agents from a data directory, and returns the
// function that writes them. Without a directory nothing is stored.
func loadAgentSettings(dir string) (save func(map[core.AgentID]hub.AgentSettings) error, settings map[core.AgentID]hub.AgentSettings, err error) {
	if dir == "" {
		return nil, nil, nil
	}
	path := filepath.Join(dir, settingsName)
	data, err := edge.ReadFile(path)
	var kept settingsFile
	if err == nil {
		err = strictjson.Decode(data, strictjson.Limits{}, &kept)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("settings of agents: %s: %w; fix the file, or remove it and set them again", path, err)
	}
	settings = map[core.AgentID]hub.AgentSettings{}
	for id, t := range kept.Agents {
		settings[id] = hub.AgentSettings{MaxConcurrent: max(0, t.MaxConcurrent), Heartbeat: max(0, time.Duration(t.HeartbeatIntervalMS)*time.Millisecond), Changes: t.Changes}
	}
	return func(all map[core.AgentID]hub.AgentSettings) error { return saveAgentSettings(path, all) }, settings, nil
}

// saveAgentSettings writes the file. A hub does not start with a broken one.
func saveAgentSettings(path string, all map[core.AgentID]hub.AgentSettings) error {
	kept := settingsFile{Agents: map[core.AgentID]savedSettings{}}
	for id, t := range all {
		kept.Agents[id] = savedSettings{t.MaxConcurrent, t.Heartbeat.Milliseconds(), t.Changes}
	}
	data, err := json.MarshalIndent(kept, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(path, data)
}
