package bottlerocket

import (
	"fmt"
	"strings"

	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/kubelet"
)

// overriddenSettings reports the user's Bottlerocket settings that have no effect because Joiner writes other values.
func overriddenSettings(r *userdata.Reader, settings map[string]any, spots map[string]userdata.Spot) {
	own := kubelet.OwnSettings(r)
	if own == nil {
		return
	}
	for _, l := range kubelet.Leaves("settings", own) {
		if table, isTable := l.Value.(map[string]any); isTable && len(table) == 0 || kubelet.IsIdentity(l.Path) && r.In.Endpoint == "" {
			continue
		}
		value, there := kubelet.Find(settings, strings.Split(strings.TrimPrefix(l.Path, "settings."), "."))
		if there && fmt.Sprint(userdata.List(value)...) == fmt.Sprint(userdata.List(l.Value)...) {
			continue
		}
		kubelet.DoesNotCount(r, kubelet.SpotAbove(spots, l.Path), l, value, "Joiner")
	}
}
