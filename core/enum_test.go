package core_test

import (
	"encoding"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
)

// word is a value of an enumeration; text reads one.
type word interface {
	comparable
	fmt.Stringer
	encoding.TextMarshaler
}

func checkWords[W word, P interface {
	*W
	encoding.TextUnmarshaler
}](t *testing.T, what string, unknown W, words map[string]W) {
	t.Helper()
	t.Run(what, func(t *testing.T) {
		for text, want := range words {
			if got := want.String(); got != text {
				t.Errorf("got %q, want %q", got, text)
			}
			if got, err := want.MarshalText(); err != nil || string(got) != text {
				t.Errorf("written: got %q and %v, want %q", got, err, text)
			}
			got := unknown
			if err := P(&got).UnmarshalText([]byte(text)); err != nil || got != want {
				t.Errorf("reading %q: got %v and %v, want %v", text, got, err, want)
			}
		}
		for _, text := range []string{"nonsense", strings.ToUpper(unknown.String()), " " + unknown.String()} {
			var got, unset W
			err := P(&got).UnmarshalText([]byte(text))
			if !errors.Is(err, &core.Fault{Code: core.CodeInvalid}) || got != unset {
				t.Errorf("reading %q: got %v and %v, want an invalid fault", text, got, err)
				continue
			}
			_, list, _ := strings.Cut(err.Error(), "send one of ")
			offered := strings.Split(list, ", ")
			for name := range words {
				if !slices.Contains(offered, name) && name != "" {
					t.Errorf("reading %q: got %q, want it to offer %q", text, err, name)
				}
			}
			if !strings.Contains(err.Error(), "unknown "+what) {
				t.Errorf("reading %q: got %q, want it to say that it is no %s", text, err, what)
			}
		}
	})
}

func TestTheNamesOfEveryEnumerationParseAndOthersAreRefused(t *testing.T) {
	checkWords(t, "tool state", core.ToolCancelled+1, map[string]core.ToolCondition{
		"": 0, "pending": core.ToolPending, "awaiting_approval": core.ToolAwaitingApproval, "running": core.ToolRunning,
		"completed": core.ToolCompleted, "failed": core.ToolFailed, "denied": core.ToolDenied, "timeout": core.ToolTimeout,
		"cancelled": core.ToolCancelled,
	})
	checkWords(t, "injection priority", core.InjectionDeferred+1, map[string]core.InjectionPriority{
		"": 0, "immediate": core.InjectionImmediate, "normal": core.InjectionNormal, "deferred": core.InjectionDeferred,
	})
	checkWords(t, "intent", core.IntentNotify+1, map[string]core.Intent{
		"": 0, "ask": core.IntentAsk, "delegate": core.IntentDelegate, "notify": core.IntentNotify,
	})
	checkWords(t, "priority", core.PriorityUrgent+1, map[string]core.Priority{
		"": 0, "low": core.PriorityLow, "normal": core.PriorityNormal, "urgent": core.PriorityUrgent,
	})
	checkWords(t, "importance", core.ImportanceHigh+1, map[string]core.Importance{
		"": 0, "low": core.ImportanceLow, "medium": core.ImportanceMedium, "high": core.ImportanceHigh,
	})
	checkWords(t, "load", core.LoadDraining+1, map[string]core.LoadState{
		"": 0, "idle": core.LoadIdle, "busy": core.LoadBusy, "overloaded": core.LoadOverloaded, "draining": core.LoadDraining,
	})
	checkWords(t, "role", core.RoleAssistant+1, map[string]core.Role{
		"": 0, "user": core.RoleUser, "assistant": core.RoleAssistant,
	})
	checkWords(t, "stage", core.StageExpired+1, map[string]core.Stage{
		"": 0, "accepted": core.StageAccepted, "delivered": core.StageDelivered, "acknowledged": core.StageAcknowledged,
		"recorded": core.StageRecorded, "refused": core.StageRefused, "expired": core.StageExpired,
	})
}

func TestUrgentComesBeforeNormalAndNormalBeforeLow(t *testing.T) {
	if core.PriorityUrgent <= core.PriorityNormal || core.PriorityNormal <= core.PriorityLow {
		t.Errorf("got %d, %d, %d for urgent, normal, low, want them in falling order", core.PriorityUrgent, core.PriorityNormal, core.PriorityLow)
	}
}

func TestTheFirstStagesOfAReceiptProveMoreAndMore(t *testing.T) {
	if core.StageAccepted >= core.StageDelivered || core.StageDelivered >= core.StageAcknowledged || core.StageAcknowledged >= core.StageRecorded {
		t.Error("got the stages accepted, delivered, acknowledged, recorded out of order, want them rising")
	}
}
