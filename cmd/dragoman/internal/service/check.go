package service

import (
	"errors"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// CheckListeners refuses a hub that nobody could reach, and one that everybody could.
func CheckListeners(c config.Config) error {
	if c.GRPCAddr == "" && c.HTTPAddr == "" && c.PiAddr == "" && c.PiSocket == "" && !c.Stdio {
		return errors.New("all listen addresses are empty, so nothing could reach the hub: set one of --grpc-addr, --http-addr, --pi-addr, --pi-socket or --stdio")
	}
	return checkExposure(c)
}

// CheckFiles reads the files that settings name, as a start does.
func CheckFiles(c config.Config) error {
	_, tokens := readTokens(c.Auth.Tokens)
	_, told := readSecrets(c.Coven.Secrets)
	_, signing := readSigningSecrets(c.Parallax.Secrets)
	return errors.Join(tokens, told, signing)
}
