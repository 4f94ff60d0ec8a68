package site

import (
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// Zone is an availability zone.
type Zone = catalog.Zone

// ZonesOf returns the first three zones of a region. In AWS, the zone with a name has different ids in different
// accounts; here zone a is always az1.
func ZonesOf(region string) []Zone {
	code := regionCode(region)
	zones := make([]Zone, 0, 3)
	for i, letter := range []string{"a", "b", "c"} {
		zones = append(zones, Zone{Name: region + letter, ID: code + "-az" + string(rune('1'+i))})
	}
	return zones
}

// regionCode returns the abbreviation of a region in zone ids: "us-east-1" is "use1", "ap-southeast-2" is "apse2",
// "us-gov-west-1" is "usgw1".
func regionCode(region string) string {
	parts := strings.Split(region, "-")
	var b strings.Builder
	for i, p := range parts {
		if i == 0 {
			b.WriteString(p)
			continue
		}
		b.WriteString(abbreviation(p))
	}
	return b.String()
}

// abbreviation shortens one word of a region's name: "southeast" is "se", "gov" is "g", "east" is "e". A number
// is not shortened.
func abbreviation(word string) string {
	for _, first := range []string{"north", "south"} {
		if rest, ok := strings.CutPrefix(word, first); ok && rest != "" {
			return first[:1] + rest[:1]
		}
	}
	if strings.Trim(word, "0123456789") == "" {
		return word
	}
	return word[:1]
}

// Partition returns the partition of a region: "aws", "aws-cn" or "aws-us-gov".
func Partition(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}
