package service

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/notify"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/suggest"
)

// openNotifier makes the hub tell what happens to the webhooks of the settings.
func (s *Service) openNotifier(o *hub.Options) {
	s.notifier = notify.New(notify.Options{
		Console: s.consoleAddress, Redact: s.redactor.Load, Log: s.log,
		Count: func(name string) {
			if h := s.counted.Load(); h != nil {
				h.Count(name)
			}
		},
	})
	s.notifier.SetWebhooks(webhooksOf(s.config))
	o.Observer = s.notifier
}

// webhooksOf returns the webhooks of settings that were checked.
func webhooksOf(c config.Config) (all []notify.Webhook) {
	for _, w := range c.Notify.Webhooks {
		one := notify.Webhook{URL: w.URL, On: w.On, Agents: w.Agents, Content: w.Content}
		if key, is := w.Key(); is {
			one.Key = key
		}
		all = append(all, one)
	}
	return all
}

// consoleAddress returns the address of the console, as far as the hub knows it; "" without a listener.
func (s *Service) consoleAddress() string {
	if s.config.A2A.URL != "" {
		return strings.TrimSuffix(s.config.A2A.URL, "/")
	}
	host, port, err := net.SplitHostPort(s.bound.HTTP)
	if err != nil {
		return ""
	}
	if net.ParseIP(host).IsUnspecified() {
		host = cmp.Or(slices.Concat(s.config.Hosts, []string{"127.0.0.1"})...)
	}
	scheme := "http"
	if s.tls.on() {
		scheme = "https"
	}
	return (&url.URL{Scheme: scheme, Host: net.JoinHostPort(host, port)}).String()
}

// closeNotifier posts what has happened while connections close, in the same time.
func (s *Service) closeNotifier() {
	if s.notifier == nil {
		return
	}
	s.conns.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		s.notifier.Close(ctx)
	})
}

// notifyWarnings names the agents of webhooks that are not in the settings: they may connect themselves.
func notifyWarnings(c config.Config) (all []string) {
	known := c.Agents.Names()
	for i, w := range c.Notify.Webhooks {
		for j, id := range w.Agents {
			if strings.Contains(id, "*") || slices.Contains(known, id) {
				continue
			}
			text := fmt.Sprintf("%s: no agent of the settings is %q: right only if it connects itself", c.At(fmt.Sprintf("notify.webhooks[%d].agents[%d]", i, j)), id)
			if near := suggest.Nearest(id, known); near != "" {
				text += ", or did you mean " + near + "?"
			}
			all = append(all, text)
		}
	}
	return all
}
