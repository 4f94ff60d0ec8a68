package conversion

import (
	"strings"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// StableKey returns the current name of a label that has several names: Kubernetes' beta names, and the EBS driver's
// name for the zone.
func StableKey(key string) string {
	if key == awsv1.LabelEBSZone {
		return catalog.LabelZone
	}
	return karpv1.StableLabel(key)
}

// OneLine returns the text with each run of white space replaced by one space.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
