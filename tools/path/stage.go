package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// agentID is the id of the agent that is asked. It answers with the question.
const agentID = "echo"

// A stage runs hubs, each with an agent of its own.
type stage struct {
	dir, program string
	journal      bool // keep what is asked
	played       int
}

// play starts a hub and an agent, asks n questions in a dialect, stops both, and returns what the hub counted.
func (s *stage) play(ctx context.Context, d dialect, n int) (c counters, err error) {
	s.played++
	dir := filepath.Join(s.dir, fmt.Sprint(s.played))
	for _, name := range []string{"hub", "agent", "home"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return nil, err
		}
	}
	if err := s.perform(ctx, dir, d, n); err != nil {
		return nil, err
	}
	return read(ctx, filepath.Join(dir, "hub"))
}

// perform is play without the counters, which are there once the hub has ended.
func (s *stage) perform(ctx context.Context, dir string, d dialect, n int) (err error) {
	ready := filepath.Join(dir, "ready.json")
	serve := []string{"serve", "--ready-file", ready, "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--pi-addr", ""}
	if s.journal {
		serve = append(serve, "--data-dir", filepath.Join(dir, "data"))
	}
	hub, err := s.start(dir, "hub", serve...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hub.stop()) }()
	if err := hub.await(ctx, ready, "http"); err != nil {
		return err
	}
	address, err := addressOf(ready)
	if err != nil {
		return err
	}
	agent, err := s.start(dir, "agent", "agent", "--hub", "http://"+address, "--dialect", "coven", "--name", agentID, "--", "cat")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, agent.stop()) }()
	if err := agent.await(ctx, agent.log, `"joined`); err != nil {
		return err
	}
	return askAll(ctx, d, address, n)
}

// askAll asks n questions one after the other, over one connection.
func askAll(ctx context.Context, d dialect, address string, n int) (err error) {
	c, err := d.connect(ctx, address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for i := range n {
		if err := c.ask(ctx, fmt.Sprint("q", i)); err != nil {
			return fmt.Errorf("question %d: %w", i, err)
		}
	}
	return nil
}

// addressOf returns the HTTP address in a ready file.
func addressOf(ready string) (string, error) {
	text, err := os.ReadFile(ready)
	if err != nil {
		return "", err
	}
	var bound struct {
		HTTP string `json:"http"`
	}
	return bound.HTTP, json.Unmarshal(text, &bound)
}

// A child is a process of the program.
type child struct {
	cmd   *exec.Cmd
	log   string // the file of its stderr
	ended chan error
}

// start starts the program. Its counters go to the directory of this name, its log to the file beside it, and
// what is the user's has no part in it.
func (s *stage) start(dir, name string, args ...string) (*child, error) {
	c := &child{cmd: exec.Command(s.program, args...), log: filepath.Join(dir, name+".log"), ended: make(chan error, 1)} //nolint:gosec // built here
	log, err := os.Create(c.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	c.cmd.Dir, c.cmd.Stderr = dir, log
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "DRAGOMAN_") {
			c.cmd.Env = append(c.cmd.Env, v)
		}
	}
	c.cmd.Env = append(c.cmd.Env, "HOME="+filepath.Join(dir, "home"), "GOCOVERDIR="+filepath.Join(dir, name))
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { c.ended <- c.cmd.Wait() }()
	return c, nil
}

// await waits until a file has a text, which a child is to write. Its log is looked at, and not the list of
// agents: the hub would count that too.
func (c *child) await(ctx context.Context, file, text string) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if said, err := os.ReadFile(file); err == nil && strings.Contains(string(said), text) {
			return nil
		}
		select {
		case <-tick.C:
		case err := <-c.ended:
			c.ended <- err
			return fmt.Errorf("%s has ended", c.cmd)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// stop ends a child and waits for it: an orderly end writes the counters. It returns what it logged if it failed.
func (c *child) stop() error {
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	kill := time.AfterFunc(time.Minute, func() { _ = c.cmd.Process.Kill() })
	defer kill.Stop()
	if err := <-c.ended; err != nil {
		said, _ := os.ReadFile(c.log) // without it the error is all that is known
		return fmt.Errorf("%s: %w\n%s", c.cmd, err, said)
	}
	return nil
}
