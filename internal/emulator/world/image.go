package world

import (
	"maps"
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// Image is an AMI.
type Image struct {
	ID           string            // "ami-0…"
	Name         string            // "amazon-eks-node-al2023-x86_64-standard-1.31-v20260601"
	Description  string            // free text; empty: none
	Architecture string            // EC2's name: "x86_64" or "arm64"
	OwnerID      string            // 12 digits
	OwnerAlias   string            // "amazon"; empty for other owners
	Public       bool              // every account may launch it
	CreatedAt    time.Time         // creation time
	DeprecatedAt time.Time         // zero: never
	RootDevice   string            // "/dev/xvda"
	Volumes      []ImageVolume     // volumes of instances, unless the launch changes them
	Tags         map[string]string // nil: none
	Windows      bool              // false: Linux

	// State is "available" (also for empty), "pending" or "failed". Product is the code of the AWS Marketplace product
	// that the account must subscribe to before it can launch the image; empty: none.
	State, Product string

	// Family, Variant and Version describe the image to the program that boots instances. Family is the amiFamily of an
	// EC2NodeClass: "AL2023". Variant is "standard", "nvidia" or "neuron". Version is the Kubernetes version: "1.31".
	// EC2's API returns neither these fields nor Flaws.
	Family, Variant, Version string

	// Flaws are defects of the image. The program that boots instances defines their names.
	Flaws []string
}

// ImageVolume is a volume of an image's instances.
type ImageVolume struct {
	Device     string // "/dev/xvda"
	SnapshotID string // "snap-0…"; empty: an empty volume
	SizeGiB    int64  // default and minimum size
	Kind       string // "gp2", "gp3"
	Encrypted  bool   // encrypted with the account's default key
}

// Images has the images that are registered in a region.
type Images struct {
	region *Region
	byID   map[string]*Image
	order  []string // ids in the order of registration
}

func (i *Image) launchError() error {
	switch {
	case i.State != "" && i.State != "available":
		return failure.New("InvalidAMIID.Unavailable", "The image ID '%s' is not available", i.ID)
	case i.Product != "":
		return failure.WithStatus(401, "OptInRequired", "In order to use this AWS Marketplace product you need to accept terms and subscribe. To do so please visit https://aws.amazon.com/marketplace/pp?sku=%s", i.Product)
	}
	return nil
}

// Register adds an image to the region. It generates an id if the image has none.
func (s *Images) Register(image Image) Image {
	if image.ID == "" {
		image.ID = s.region.site.IDs.New("ami")
	}
	image.Tags = maps.Clone(image.Tags)
	if s.byID[image.ID] == nil {
		s.order = append(s.order, image.ID)
	}
	s.byID[image.ID] = &image
	return image
}

// ByID returns an image by id; false if it is not registered.
func (s *Images) ByID(id string) (Image, bool) {
	if i := s.byID[id]; i != nil {
		return *i, true
	}
	return Image{}, false
}

// All returns the images of the region, in the order of registration.
func (s *Images) All() []Image {
	out := make([]Image, 0, len(s.order))
	for _, id := range s.order {
		out = append(out, *s.byID[id])
	}
	return out
}

// Deregister removes an image. Instances of the image continue to run.
func (s *Images) Deregister(id string) {
	delete(s.byID, id)
	s.order = slices.DeleteFunc(s.order, func(known string) bool { return known == id })
}
