package nodeadm

import (
	"fmt"
	"strings"

	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/kubelet"
)

// reportOverridden reports values of a NodeConfig that a later NodeConfig overrides.
func reportOverridden(r *userdata.Reader, all []configPart) {
	for i, part := range all[:len(all)-1] {
		spec, _ := part.doc["spec"].(map[string]any)
		for _, l := range kubelet.Leaves("spec", spec) {
			isFlags := strings.HasPrefix(l.Path, "spec.kubelet.flags") // the flags of all NodeConfigs take effect
			// without an endpoint, Joiner writes placeholders
			isPlaceholder := kubelet.IsClusterIdentity(l.Path) && r.In.Endpoint == ""
			if l.Value == nil || isFlags || isPlaceholder {
				continue
			}
			for _, later := range all[i+1:] {
				laterValue, _ := kubelet.Find(later.doc, strings.Split(l.Path, "."))
				if laterValue == nil && l.Path == "spec.kubelet.maxPodsExpression" {
					laterValue = userdata.ValueAt(later.doc, "spec", "kubelet", "config", "maxPods")
				}
				_, isTable := laterValue.(map[string]any)
				isEqual := fmt.Sprint(userdata.List(laterValue)...) == fmt.Sprint(userdata.List(l.Value)...)
				// a table is merged, or invalid in place of a value
				if laterValue == nil || isTable || isEqual {
					continue
				}
				by := "a later NodeConfig"
				if later.at.Part == r.OurPart && r.OurPart > 0 {
					by = "the NodeConfig that Joiner writes"
				}
				kubelet.ReportOverridden(r, userdata.FirstKnown(part.positions[l.Path], part.at), l, laterValue, by)
				break
			}
		}
	}
}
