package rest

import (
	"net/http"

	"github.com/dragoman-hub/dragoman/core"
)

// getPrincipals returns the principals that the hub knows, for operators.
func (a *api) getPrincipals(c call) error {
	all, err := a.hub.Principals(c.from)
	if err != nil {
		return err
	}
	return a.reply(c.w, http.StatusOK, map[string][]core.KnownPrincipal{"principals": append([]core.KnownPrincipal{}, all...)})
}

// postApprove lets a principal that registered itself connect.
func (a *api) postApprove(c call) error { return a.admit(c, true) }

// postRevoke refuses a principal that registered itself, and ends its sessions.
func (a *api) postRevoke(c call) error { return a.admit(c, false) }

func (a *api) admit(c call, approved bool) error {
	name := c.id()
	if err := a.hub.Admit(c.r.Context(), c.from, core.Admit{Principal: name, Approved: approved}); err != nil {
		return err
	}
	status := core.PrincipalRevoked
	if approved {
		status = core.PrincipalApproved
	}
	return a.reply(c.w, http.StatusOK, map[string]string{"principal": name, "status": status.String()})
}
