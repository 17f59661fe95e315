package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/editor/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

func TestTheAgentIsToldWhatTheHubCanDo(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.run()
		m := p.wants("initialize")
		want := `{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":false,"writeTextFile":false},"terminal":false,"session":{"compaction":{},"configOptions":{"boolean":{}},"notices":{}},"elicitation":{"form":{},"url":{}}},"clientInfo":{"name":"dragoman","title":"Dragoman","version":"9"}}`
		if got := string(m.Params.Raw()); got != want {
			s.Errorf("got  %s\nwant %s", got, want)
		}
		p.replies(m, `{"protocolVersion":1,"agentInfo":{"name":"stub","version":"3"},"agentCapabilities":{"loadSession":true}}`)
		profile := <-s.ready
		if got := string(profile.Metadata["agentInfo"]); got != `{"name":"stub","version":"3"}` {
			s.Errorf("got the metadata %s, want the name and version of the agent", got)
		}
		if profile.Features.Has(core.FeatureSessions) || !profile.Features.Has(core.FeatureApprovals|core.FeatureCancellation|core.FeatureStreaming|core.FeatureOptions) || profile.Features.Has(core.FeatureInjection) {
			s.Errorf("got the features %v", profile.Features.Names())
		}
		if err := stop(); err != nil {
			s.Errorf("Run returned %v, want nil", err)
		}
	})
}

func TestAnAgentOfAnotherVersionIsRefused(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, result := s.failing()
		p.replies(p.wants("initialize"), `{"protocolVersion":2,"agentCapabilities":{}}`)
		if err := <-result; !errors.Is(err, &core.Fault{Code: core.CodeUnsupported}) || !strings.Contains(err.Error(), "version 2") {
			s.Errorf("got %v, want version 2 refused", err)
		}
	})
}

func TestAnAgentThatWantsToBeLoggedInSaysHow(t *testing.T) {
	const methods = `"authMethods":[{"id":"oauth-personal","name":"Log in with Google"},{"id":"login","name":"Terminal","type":"terminal","args":["auth","login"]}]`
	serve(t, nil, func(s *served) {
		p, stop := s.run()
		p.replies(p.wants("initialize"), `{"protocolVersion":1,`+methods+`}`)
		s.join(1)
		asked := s.ask("x")
		p.fails(p.wants("session/new"), -32000, "Authentication required")
		s.settle()
		f := asked.Answer().Fault
		for _, want := range []string{"wants to be authenticated", "oauth-personal (Log in with Google)", "run in a terminal with the arguments auth login", "Log in once", "name a method"} {
			if f == nil || f.Code != core.CodeUnauthenticated || !strings.Contains(f.Message, want) {
				s.Errorf("got %v, want an unauthenticated fault with %q", f, want)
			}
		}
		_ = stop()
	})
}

func TestTheConfiguredMethodAuthenticates(t *testing.T) {
	const hello = `{"protocolVersion":1,"authMethods":[{"id":"key","name":"Key"}]}`
	with := func(method string) func(*client.Options) {
		return func(o *client.Options) { o.Auth = method }
	}
	serve(t, with("key"), func(s *served) {
		p, stop := s.run()
		p.replies(p.wants("initialize"), hello)
		m := p.wants("authenticate")
		if got := string(m.Params.Raw()); got != `{"methodId":"key"}` {
			s.Errorf("got %s", got)
		}
		p.replies(m, `{}`)
		<-s.ready
		_ = stop()
	})
	for _, c := range []struct{ method, want string }{
		{"other", `the agent has no method "other" to authenticate: it offers key (Key). Log in`},
		{"key", "authenticate with key: the agent wants to be authenticated (no): it offers key (Key). Log in"},
	} {
		serve(t, with(c.method), func(s *served) {
			p, result := s.failing()
			p.replies(p.wants("initialize"), hello)
			if c.method == "key" {
				p.fails(p.wants("authenticate"), -32000, "no")
			}
			if err := <-result; !errors.Is(err, &core.Fault{Code: core.CodeUnauthenticated}) || !strings.Contains(err.Error(), c.want) {
				s.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestAnAgentThatCannotBeStartedSaysWhy(t *testing.T) {
	missing := errors.New("exec: no such file")
	serve(t, func(o *client.Options) {
		o.Dial = func(context.Context, ...string) (link.Conn[[]byte, []byte], error) { return nil, missing }
	}, func(s *served) {
		if err := s.client.Run(s.Context(), nil); !errors.Is(err, missing) {
			s.Errorf("got %v, want the error of the start", err)
		}
	})
	serve(t, func(o *client.Options) { o.Dir = "w" }, func(s *served) {
		if err := s.client.Run(s.Context(), nil); !errors.Is(err, &core.Fault{Code: core.CodeInvalid}) {
			s.Errorf("got %v, want an invalid fault for a relative directory", err)
		}
	})
}

func TestAnAgentThatNeverAnswersIsGivenUp(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, result := s.failing()
		p.wants("initialize")
		began := time.Now()
		go func() {
			for {
				if _, err := p.end.Receive(s.Context()); err != nil {
					return
				}
			}
		}()
		if err := <-result; !errors.Is(err, &core.Fault{Code: core.CodeTimeout}) {
			s.Errorf("got %v after %v, want a timeout", err, time.Since(began))
		}
	})
}

func TestAnAgentThatDiesBeforeItIsReadyIsSaidToBeGone(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, result := s.failing()
		p.wants("initialize")
		p.dies()
		s.gone(<-result)
	})
}
