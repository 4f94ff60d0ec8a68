package catalog

import (
	"slices"
	"strings"
)

// Obstacle is the reason why a NodeClass cannot have nodes of a type, regardless of the pods. It is empty if there is
// no obstacle.
type Obstacle string

// The obstacles.
const (
	NotForKubernetes     Obstacle = "no architecture that Kubernetes runs on"
	NotVirtualHVM        Obstacle = "no hardware virtualization (hvm)"
	NotOnAL2023          Obstacle = "Amazon Linux 2023 does not run on a1"
	NotOnWindows         Obstacle = "Windows needs amd64"
	NotOnAL2             Obstacle = "AWS publishes no image of Amazon Linux 2 for arm64 with a GPU or an accelerator"
	NoSuchInterface      Obstacle = "lacks a network card or interface that the NodeClass asks for"
	TooFewEFA            Obstacle = "supports fewer EFA interfaces than the NodeClass asks for"
	NoNestedVirtual      Obstacle = "does not support nested virtualization"
	NoConnectionTracking Obstacle = "connection tracking timeouts need the nitro hypervisor"
	NoSuchPlacement      Obstacle = "does not support the placement group's strategy"
)

// Incompatible returns the first obstacle to using the type under the settings; empty if there is none.
func Incompatible(f Facts, s Settings) Obstacle {
	switch {
	case f.Arch() == "":
		return NotForKubernetes
	case !slices.Contains(f.Virtualization, "hvm"):
		return NotVirtualHVM
	}
	if o := imageObstacle(f, s); o != "" {
		return o
	}
	switch {
	case s.NestedVirtualization && !slices.Contains(f.Processor.Features, "nested-virtualization"):
		return NoNestedVirtual
	case s.ConnectionTracking && f.Hypervisor != "nitro":
		return NoConnectionTracking
	case s.PlacementStrategy != "" && !slices.Contains(f.PlacementStrategies, s.PlacementStrategy):
		return NoSuchPlacement
	}
	return interfacesObstacle(f, s)
}

// imageObstacle returns the reason why no image of the AMI family runs on the type; empty if an image does.
func imageObstacle(f Facts, s Settings) Obstacle {
	switch {
	case (s.Family == "" || s.Family == AL2023) && strings.HasPrefix(f.Name, "a1."):
		return NotOnAL2023
	case familyOf(s.Family).isWindows() && f.Arch() != "amd64":
		return NotOnWindows
	case s.PublishedImages && s.Family == AL2 && f.Arch() == "arm64" && hasAccelerator(f):
		return NotOnAL2
	}
	return ""
}

func hasAccelerator(f Facts) bool { return len(f.GPUs)+len(f.Inference)+len(f.Neuron) > 0 }

// interfacesObstacle returns the reason why the type cannot have the interfaces of the NodeClass; empty if the type
// can.
func interfacesObstacle(f Facts, s Settings) Obstacle {
	if len(s.Interfaces) == 0 {
		return ""
	}
	if f.Network.ENA == "unsupported" {
		return NoSuchInterface
	}
	for _, want := range s.Interfaces {
		fits := func(c NetworkCard) bool { return c.Index == want.Card && want.Device < c.MaxInterfaces }
		if !slices.ContainsFunc(f.Network.Cards, fits) {
			return NoSuchInterface
		}
	}
	if efaInterfaces(f, s) > f.Network.EFAInterfaces {
		return TooFewEFA
	}
	return ""
}
