package v1

import (
	"errors"
	"fmt"
	"strings"
)

// AMI families. The family of an AMI determines the format of its user data and its default disks.
const (
	AMIFamilyAL2          = "AL2"
	AMIFamilyAL2023       = "AL2023"
	AMIFamilyBottlerocket = "Bottlerocket"
	AMIFamilyCustom       = "Custom"
	AMIFamilyWindows2019  = "Windows2019"
	AMIFamilyWindows2022  = "Windows2022"
	AMIFamilyWindows2025  = "Windows2025"
)

// AliasVersionLatest is the version of an alias that always names the newest AMI of its family.
const AliasVersionLatest = "latest"

var errAlias = errors.New("an alias is written family@version, where the family is one of" +
	" al2, al2023, bottlerocket, windows2019, windows2022, windows2025")

// Alias names an image that AWS makes for EKS.
type Alias struct {
	// Family is an AMI family, in the spelling of the AMIFamily constants.
	Family string
	// Version is a release of the family in the family's own notation, or AliasVersionLatest.
	Version string
}

// String returns the alias as written in a manifest, for example al2023@latest.
func (a Alias) String() string { return strings.ToLower(a.Family) + "@" + a.Version }

// ParseAlias parses an alias as written in a manifest.
func ParseAlias(text string) (Alias, error) {
	name, version, _ := strings.Cut(text, "@")
	family, ok := aliasFamily(name)
	if !ok || version == "" {
		return Alias{}, fmt.Errorf("read alias %q: %w", text, errAlias)
	}
	return Alias{Family: family, Version: version}, nil
}

// aliasFamily returns the AMI family for the part of an alias before the @; false if there is none.
func aliasFamily(name string) (string, bool) {
	switch name {
	case "al2":
		return AMIFamilyAL2, true
	case "al2023":
		return AMIFamilyAL2023, true
	case "bottlerocket":
		return AMIFamilyBottlerocket, true
	case "windows2019":
		return AMIFamilyWindows2019, true
	case "windows2022":
		return AMIFamilyWindows2022, true
	case "windows2025":
		return AMIFamilyWindows2025, true
	}
	return "", false
}

// Alias returns the alias among the AMI selector terms. The second result is false if no term has an alias, or if the
// alias is invalid. The schema rejects invalid aliases, and an alias beside other terms.
func (s EC2NodeClassSpec) Alias() (Alias, bool) {
	for _, term := range s.AMISelectorTerms {
		if term.Alias == "" {
			continue
		}
		alias, err := ParseAlias(term.Alias)
		return alias, err == nil
	}
	return Alias{}, false
}

// ResolvedAMIFamily returns amiFamily if it is set, else the family of the alias, else Custom.
func (s EC2NodeClassSpec) ResolvedAMIFamily() string {
	if s.AMIFamily != nil {
		return *s.AMIFamily
	}
	if alias, ok := s.Alias(); ok {
		return alias.Family
	}
	return AMIFamilyCustom
}
