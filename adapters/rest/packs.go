package rest

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/dragoman-hub/dragoman/core/hub"
)

// getPacks lists the packs: those that are connected, and those of the settings, which may not
// be. What a child process is, and why it ended, is for who may operate.
func (a *api) getPacks(c call) error {
	packs := a.hub.Packs(c.from)
	if a.opts.Packs != nil && a.hub.MayOperate(c.from) {
		for _, known := range a.opts.Packs() {
			i := slices.IndexFunc(packs, func(p hub.PackStatus) bool { return p.ID == known.ID })
			if i < 0 {
				known.Tools = []string{}
				packs = append(packs, known)
				continue
			}
			packs[i].Child = known.Child
		}
		slices.SortFunc(packs, func(x, y hub.PackStatus) int { return cmp.Compare(x.ID, y.ID) })
	}
	return a.reply(c.w, http.StatusOK, struct {
		Packs []hub.PackStatus `json:"packs"`
	}{packs})
}
