package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/memory"
	"github.com/dragoman-hub/dragoman/core/quota"
	"github.com/dragoman-hub/dragoman/core/usage"
	"github.com/dragoman-hub/dragoman/schemas"
)

// openHub opens the journal, the engine and the dialects. starting is told what it waits for.
func (s *Service) openHub(ctx context.Context, observer func(*hub.Options), starting *startAnswers) error {
	opts, err := s.hubOptions()
	if err != nil {
		return err
	}
	if opts.UsageStore, err = s.openJournal(ctx, starting.waits); err != nil {
		return err
	}
	starting.reads()
	opts.Journal = s.journal
	if err := s.openCluster(ctx, &opts); err != nil {
		return err
	}
	if err := s.openAudit(ctx, opts.ID); err != nil {
		return err
	}
	opts.Auditor, opts.Redact = s.audit, s.redactor.Load
	if err := s.openAuth(ctx); err != nil {
		return err
	}
	if err := s.openTraces(ctx, &opts); err != nil {
		return err
	}
	s.openNotifier(&opts)
	if observer != nil {
		observer(&opts)
	}
	s.hub = hub.New(opts)
	s.counted.Store(s.hub)
	if s.traces != nil {
		s.traces.Start(s.hub.Ended)
	}
	if err := s.hub.Recover(ctx); err != nil {
		return fmt.Errorf("reading the journal: %w", err)
	}
	s.notifier.Start(s.hub)
	s.answerPrincipals()
	s.joinCluster()
	for _, d := range Dialects() {
		if d.Open == nil {
			continue
		}
		if err := d.Open(s, ctx); err != nil {
			return err
		}
	}
	// Recovery leaves much garbage, which the runtime would keep for minutes.
	debug.FreeOSMemory()
	return nil
}

// hubOptions locks the data directory and returns the options of the engine.
func (s *Service) hubOptions() (o hub.Options, err error) {
	c := s.config
	o.ID, o.Log, o.Schema, o.Budgets = core.NewID(), s.log, schemas.Compile, c.Budgets.Limits(c.Usage.Currency)
	o.Prices = c.Usage.Prices.In(c.Usage.Currency)
	q := c.Quotas
	o.Quotas = quota.NewBook(quota.Limits{Connections: q.Connections, Tasks: q.Tasks, Bytes: q.Bytes, Rate: float64(q.Rate)})
	o.Memory = memory.New(contentMemory(c.Limits.Memory))
	s.frames = newFrames(c.Frames.Keep, o.Memory)
	o.Frames = s.frames
	if o.Limits, err = hubLimits(c); err != nil {
		return o, err
	}
	o.Authorizer = &s.rights
	o.Restart = func(name string) error { return s.supervisor.Restart(name) }
	o.Refused = func(id core.AgentID) *core.Child { return s.supervisor.Refused(id) }
	o.Registrar = registrar{s}
	if c.DataDir == "" {
		return o, nil
	}
	if s.dir, err = lockDir(c.DataDir); errors.Is(err, errTaken) {
		return o, fmt.Errorf("another hub uses the data directory %s: stop it, or name another with %s", c.DataDir, c.At("data_dir").Where())
	} else if err != nil {
		return o, fmt.Errorf("%s %s: %w; name a directory that you may write into", c.At("data_dir"), c.DataDir, err)
	}
	if o.ID, err = stableID(c.DataDir); err != nil {
		return o, err
	}
	o.SaveAgentSettings, o.AgentSettings, err = loadAgentSettings(c.DataDir)
	return o, err
}

// hubLimits returns the limits of the engine.
func hubLimits(c config.Config) (hub.Limits, error) {
	limits := c.Limits.Limits
	limits.Retries, limits.HistoryBytes = orNever(limits.Retries), orNever(limits.HistoryBytes)
	limits.Silence, limits.CauseMemory, limits.JournalLag = orNever(limits.Silence), orNever(limits.CauseMemory), orNever(c.Journal.Lag)
	limits.SlotGrace = limits.CancelGrace
	if err := limits.Disconnect.UnmarshalText([]byte(c.Limits.Disconnect)); err != nil {
		return limits, fmt.Errorf("limits.disconnect: %w", err)
	}
	return limits, nil
}

// openJournal opens the journal in memory, on disk or at a NATS server, and returns its usage
// store; nil in memory. waiting is told which other hubs it waits for.
func (s *Service) openJournal(ctx context.Context, waiting func(nats.Wait)) (usage.Store, error) {
	c := s.config
	keep := journal.Retention{Age: c.Journal.Age, Bytes: c.Journal.Bytes}
	if c.DataDir == "" && c.Journal.NATSURL == "" {
		s.journal = journal.NewMemory(keep)
		return nil, nil //nolint:nilnil // no store is not an error
	}
	sync, err := nats.ParseSync(c.Journal.Sync)
	if err != nil {
		return nil, err
	}
	others, err := natsCluster(c)
	if err != nil {
		return nil, err
	}
	j, err := nats.Open(ctx, nats.Options{
		Dir: c.DataDir, URL: c.Journal.NATSURL, Name: cmp.Or(c.HubName, c.Journal.Name), Cluster: others, Sync: sync, Keep: keep, Log: s.log,
		KeepUsage: usage.Retention{Age: c.Usage.Age, Bytes: c.Usage.Bytes},
		Logs:      recordLogs(c), Waiting: waiting, Version: Version,
	})
	if err != nil {
		var format *nats.FormatError
		if c.Journal.NATSURL != "" && !errors.As(err, &format) {
			err = fmt.Errorf("%w; start NATS there, or name another server with %s", err, c.At("journal.nats_url").Where())
		}
		return nil, fmt.Errorf("opening the journal: %w", err)
	}
	s.journal, s.piJournal = j, j.Log(pi.Name)
	return j.Usage(), nil
}

// orNever returns -1, which disables an option, for the zero of a setting: the zero of an
// option is its default.
func orNever[N int | time.Duration](n N) N {
	if n == 0 {
		return -1
	}
	return n
}
