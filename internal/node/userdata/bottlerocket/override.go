package bottlerocket

import (
	"fmt"
	"strings"

	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/kubelet"
)

// reportOverridden reports the user's Bottlerocket settings that have no effect because Joiner writes other values.
func reportOverridden(r *userdata.Reader, settings map[string]any, positions map[string]userdata.Position) {
	own := kubelet.OwnSettings(r)
	if own == nil {
		return
	}
	for _, l := range kubelet.Leaves("settings", own) {
		// Without r.In.Endpoint, Joiner's values that identify the cluster are placeholders, and cannot be compared. An
		// empty table sets nothing.
		isPlaceholder := kubelet.IsClusterIdentity(l.Path) && r.In.Endpoint == ""
		if table, isTable := l.Value.(map[string]any); isPlaceholder || isTable && len(table) == 0 {
			continue
		}
		effective, found := kubelet.Find(settings, strings.Split(strings.TrimPrefix(l.Path, "settings."), "."))
		if found && fmt.Sprint(userdata.List(effective)...) == fmt.Sprint(userdata.List(l.Value)...) {
			continue
		}
		kubelet.ReportOverridden(r, kubelet.PositionAbove(positions, l.Path), l, effective, "Joiner")
	}
}
