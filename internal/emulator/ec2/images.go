package ec2

import (
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

type describeImagesIn struct {
	ImageIds          []string     `aws:"ImageId"`
	Owners            []string     `aws:"Owner"`
	ExecutableUsers   []string     `aws:"ExecutableBy"`
	Filters           []api.Filter `aws:"Filter"`
	IncludeDeprecated bool
	IncludeDisabled   bool
	api.Paged
}

type describeImagesOut struct {
	Images    []image `aws:"ImagesSet"`
	NextToken string
}

type image struct {
	ImageId            string
	ImageLocation      string
	ImageState         string
	ImageOwnerId       string
	CreationDate       string
	IsPublic           bool
	Architecture       string
	ImageType          string
	Platform           string
	PlatformDetails    string
	UsageOperation     string
	ImageOwnerAlias    string
	Name               string
	Description        string
	RootDeviceType     string
	RootDeviceName     string
	BlockDevices       []imageDevice `aws:"BlockDeviceMapping"`
	VirtualizationType string
	Hypervisor         string
	EnaSupport         bool
	SriovNetSupport    string
	DeprecationTime    string
	Tags               []world.Tag `aws:"TagSet"`
}

type imageDevice struct {
	DeviceName string
	Ebs        imageVolume
}

type imageVolume struct {
	DeleteOnTermination bool
	SnapshotId          string
	VolumeSize          int64
	VolumeType          string
	Encrypted           bool
}

// describeImages lists the caller's images and the public images.
func describeImages(c *api.Call, in *describeImagesIn) (describeImagesOut, error) {
	var found []world.Image
	for _, i := range c.Region.Images.All() {
		if isShown(c, i, in) {
			found = append(found, i)
		}
	}
	for _, id := range in.ImageIds {
		if _, ok := c.Region.Images.ByID(id); !ok {
			return describeImagesOut{}, &failure.Error{Code: "InvalidAMIID.NotFound", Message: "The image id '[" + id + "]' does not exist"}
		}
	}
	found, err := api.FilterItems(found, in.Filters, imageFilters)
	if err != nil {
		return describeImagesOut{}, err
	}
	p, err := in.Page(0, 1000)
	if err != nil {
		return describeImagesOut{}, err
	}
	found, next, err := api.PageOf(found, func(i world.Image) string { return i.ID }, p)
	if err != nil {
		return describeImagesOut{}, err
	}
	out := describeImagesOut{Images: make([]image, len(found)), NextToken: next}
	for n, i := range found {
		out.Images[n] = imageOf(i)
	}
	return out, nil
}

// isShown reports whether the caller may see the image, and the request selects it by id and owner. A deprecated image
// of another account is shown only if the request has its id or IncludeDeprecated.
func isShown(c *api.Call, i world.Image, in *describeImagesIn) bool {
	isRequested := slices.Contains(in.ImageIds, i.ID)
	own := i.OwnerID == c.Caller.Account
	if len(in.ImageIds) > 0 && !isRequested || !i.Public && !own {
		return false
	}
	deprecated := !i.DeprecatedAt.IsZero() && i.DeprecatedAt.Before(c.Now)
	return (!deprecated || own || isRequested || in.IncludeDeprecated) && isOwnedByAny(c, i, in.Owners)
}

func isOwnedByAny(c *api.Call, i world.Image, owners []string) bool {
	if len(owners) == 0 {
		return true
	}
	return slices.ContainsFunc(owners, func(o string) bool {
		return o == i.OwnerID || o == "self" && i.OwnerID == c.Caller.Account || o == i.OwnerAlias && o != ""
	})
}

func imageFilters(i world.Image) api.Filterable {
	return api.Filterable{Tags: i.Tags, Values: map[string][]string{
		"image-id": {i.ID}, "name": {i.Name}, "architecture": {i.Architecture}, "state": {"available"},
		"owner-id": {i.OwnerID}, "owner-alias": {i.OwnerAlias}, "is-public": api.BoolValues(i.Public), "description": {i.Description},
		"root-device-name": {i.RootDevice}, "root-device-type": {"ebs"}, "virtualization-type": {"hvm"}, "image-type": {"machine"},
		"platform": platformOf(i), "creation-date": {i.CreatedAt.Format(timeFormat)}, "hypervisor": {"xen"}, "ena-support": {"true"},
	}}
}

func platformOf(i world.Image) []string {
	if i.Windows {
		return []string{"windows"}
	}
	return nil
}

func imageOf(i world.Image) image {
	out := image{
		ImageId:            i.ID,
		ImageLocation:      api.Or(i.OwnerAlias, i.OwnerID) + "/" + i.Name,
		ImageState:         api.Or(i.State, "available"),
		ImageOwnerId:       i.OwnerID,
		CreationDate:       i.CreatedAt.Format(timeFormat),
		IsPublic:           i.Public,
		Architecture:       i.Architecture,
		ImageType:          "machine",
		PlatformDetails:    "Linux/UNIX",
		UsageOperation:     "RunInstances",
		ImageOwnerAlias:    i.OwnerAlias,
		Name:               i.Name,
		Description:        i.Description,
		RootDeviceType:     "ebs",
		RootDeviceName:     i.RootDevice,
		BlockDevices:       []imageDevice{},
		VirtualizationType: "hvm",
		Hypervisor:         "xen",
		EnaSupport:         true,
		SriovNetSupport:    "simple",
		Tags:               api.TagList(i.Tags),
	}
	if i.Windows {
		out.Platform, out.PlatformDetails, out.UsageOperation = "windows", "Windows", "RunInstances:0002"
	}
	if !i.DeprecatedAt.IsZero() {
		out.DeprecationTime = i.DeprecatedAt.Format(timeFormat)
	}
	for _, v := range i.Volumes {
		out.BlockDevices = append(out.BlockDevices, imageDevice{DeviceName: v.Device, Ebs: imageVolume{
			DeleteOnTermination: true, SnapshotId: v.SnapshotID, VolumeSize: v.SizeGiB, VolumeType: v.Kind, Encrypted: v.Encrypted,
		}})
	}
	return out
}

type spotPricesIn struct {
	StartTime        time.Time
	EndTime          time.Time
	InstanceTypes    []string     `aws:"InstanceType"`
	Products         []string     `aws:"ProductDescription"`
	Filters          []api.Filter `aws:"Filter"`
	AvailabilityZone string
	api.Paged
}

type spotPricesOut struct {
	NextToken string
	History   []spotPrice `aws:"SpotPriceHistorySet"`
}

type spotPrice struct {
	InstanceType       string
	ProductDescription string
	SpotPrice          string
	Timestamp          time.Time
	AvailabilityZone   string
	AvailabilityZoneId string
}

// product is the product description of all spot prices. EC2 also accepts it with the suffix " (Amazon VPC)".
const product = "Linux/UNIX"

// describeSpotPriceHistory lists the spot prices of a period, those of one offering from the newest to the oldest.
// Without a period it lists the current prices.
func describeSpotPriceHistory(c *api.Call, in *spotPricesIn) (spotPricesOut, error) {
	start, end := in.StartTime, in.EndTime
	if start.IsZero() {
		start = c.Now
	}
	if end.IsZero() {
		end = c.Now
	}
	if len(in.Products) > 0 && !slices.Contains(in.Products, product) && !slices.Contains(in.Products, product+" (Amazon VPC)") {
		return spotPricesOut{History: []spotPrice{}}, nil
	}
	market := c.World.Market(c.RegionID)
	names := market.Names()
	if len(in.InstanceTypes) > 0 {
		names = slices.Sorted(slices.Values(in.InstanceTypes))
	}
	all := []spotPrice{}
	for _, name := range names {
		for _, z := range c.Region.Zones() {
			if in.AvailabilityZone != "" && in.AvailabilityZone != z.Name {
				continue
			}
			for _, p := range slices.Backward(market.SpotPrices(name, z.Name, start, end)) {
				all = append(all, spotPrice{ // SpotPrice has six decimals, Price.String has four
					InstanceType: name, ProductDescription: product, SpotPrice: p.Price.String() + "00", Timestamp: p.From,
					AvailabilityZone: z.Name, AvailabilityZoneId: z.ID,
				})
			}
		}
	}
	all, err := api.FilterItems(all, in.Filters, func(p spotPrice) api.Filterable {
		return api.Filterable{Values: map[string][]string{
			"instance-type": {p.InstanceType}, "availability-zone": {p.AvailabilityZone},
			"product-description": {p.ProductDescription, product + " (Amazon VPC)"}, "spot-price": {p.SpotPrice},
		}}
	})
	if err != nil {
		return spotPricesOut{}, err
	}
	p, err := in.Page(1000, 2000)
	if err != nil {
		return spotPricesOut{}, err
	}
	all, next, err := api.PageOf(all, func(p spotPrice) string {
		return p.InstanceType + "/" + p.AvailabilityZone + "/" + p.Timestamp.Format(timeFormat)
	}, p)
	return spotPricesOut{History: append([]spotPrice{}, all...), NextToken: next}, err
}
