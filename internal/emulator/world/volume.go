package world

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// volumeRule has the limits of a volume type: size in GiB, IOPS, and throughput in MiB/s. If maxIOPS or maxThroughput
// is 0, the parameter is not supported. Source: the CreateVolume reference and "Amazon EBS volume types". The
// controller does not use this table, so that the emulator checks the controller's own limits independently.
type volumeRule struct {
	minGiB, maxGiB   int64
	minIOPS, maxIOPS int64
	maxIOPSPerGiB    int64 // applies to IOPS above minIOPS

	minThroughput, maxThroughput int64
}

var volumeRules = map[string]volumeRule{
	"standard": {1, 1024, 0, 0, 0, 0, 0},
	"gp2":      {1, 16384, 0, 0, 0, 0, 0},
	"gp3":      {1, 65536, 3000, 80000, 500, 125, 2000},
	"io1":      {4, 16384, 100, 64000, 50, 0, 0},
	"io2":      {4, 65536, 100, 256000, 1000, 0, 0},
	"st1":      {125, 16384, 0, 0, 0, 0, 0},
	"sc1":      {125, 16384, 0, 0, 0, 0, 0},
}

func (b resolvedLaunch) checkVolumes() error {
	for _, d := range b.data.Devices {
		if d.DeviceName == "" {
			return failure.New("MissingParameter", "The request must contain the parameter blockDeviceMapping.deviceName")
		}
		if d.EBS == nil {
			continue
		}
		kind, size, snapshot := cmp.Or(d.EBS.Kind, "gp2"), int64(0), ""
		i := slices.IndexFunc(b.image.Volumes, func(v ImageVolume) bool { return v.Device == d.DeviceName })
		if i >= 0 {
			v := b.image.Volumes[i]
			kind, size, snapshot = cmp.Or(d.EBS.Kind, cmp.Or(v.Kind, "gp3")), v.SizeGiB, v.SnapshotID
		}
		if d.EBS.SizeGiB != nil {
			minSize := size
			if size = *d.EBS.SizeGiB; size < 1 {
				return failure.New("InvalidParameterValue", "Invalid value '%d' for volumeSize.", size)
			}
			if size < minSize {
				return failure.New("InvalidBlockDeviceMapping",
					"Volume of size %dGB is smaller than snapshot '%s', expect size >= %dGB", size, snapshot, minSize)
			}
		}
		if err := d.EBS.check(kind, size, d.DeviceName == b.image.RootDevice); err != nil {
			return err
		}
	}
	return nil
}

// check returns EC2's error if size, IOPS or throughput are invalid for the volume type kind. A size of 0 is unknown.
func (e *VolumeSpec) check(kind string, size int64, isRoot bool) error {
	rule, ok := volumeRules[kind]
	switch {
	case !ok:
		return failure.New("InvalidParameterValue", "Invalid value '%s' for VolumeType.", kind)
	case isRoot && (kind == "st1" || kind == "sc1"):
		return failure.New("InvalidParameterValue", "Invalid value '%s' for VolumeType. The volume type cannot be used for a root device.", kind)
	case size > 0 && size < rule.minGiB:
		return failure.New("InvalidParameterValue", "Volume of %dGiB is too small for volume type %s; minimum is %dGiB", size, kind, rule.minGiB)
	case size > rule.maxGiB:
		return failure.New("InvalidParameterValue", "Volume of %dGiB is too large for volume type %s; maximum is %dGiB", size, kind, rule.maxGiB)
	case e.IOPS == nil && (kind == "io1" || kind == "io2"):
		return failure.New("MissingParameter", "The request must contain the parameter iops for volumes of type %s", kind)
	case e.IOPS != nil && rule.maxIOPS == 0:
		return failure.New("InvalidParameterCombination", "The parameter iops is not supported for %s volumes.", kind)
	case e.Throughput != nil && rule.maxThroughput == 0:
		return failure.New("InvalidParameterCombination", "The parameter throughput is not supported for %s volumes.", kind)
	}
	return rule.check(value(e.IOPS), value(e.Throughput), size)
}

// check returns EC2's error if IOPS or throughput are invalid. 0 stands for a parameter that the request does not have,
// and for an unknown size.
func (r volumeRule) check(iops, throughput, size int64) error {
	switch {
	case iops == 0:
		iops = r.minIOPS // EC2's default
	case iops < r.minIOPS:
		return failure.New("InvalidParameterValue", "Volume iops of %d is too low; minimum is %d.", iops, r.minIOPS)
	case iops > r.maxIOPS:
		return failure.New("InvalidParameterValue", "Volume iops of %d is too high; maximum is %d.", iops, r.maxIOPS)
	case size > 0 && iops > r.minIOPS && iops > size*r.maxIOPSPerGiB:
		return failure.New("InvalidParameterValue", "Iops to volume size ratio of %.6f is too high; maximum is %.6f",
			float64(iops)/float64(size), float64(r.maxIOPSPerGiB))
	}
	switch {
	case throughput == 0:
	case throughput < r.minThroughput:
		return failure.New("InvalidParameterValue", "Throughput of %d MiB/s is too low; minimum is %d.", throughput, r.minThroughput)
	case throughput > r.maxThroughput:
		return failure.New("InvalidParameterValue", "Throughput of %d MiB/s is too high; maximum is %d.", throughput, r.maxThroughput)
	case throughput*4 > iops:
		return failure.New("InvalidParameterValue",
			"Throughput (MiB/s) to iops ratio of %.6f is too high; maximum is 0.250000 MiB/s per iops.", float64(throughput)/float64(iops))
	}
	return nil
}
