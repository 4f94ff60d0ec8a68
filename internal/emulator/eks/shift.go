package eks

import (
	"strconv"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// ShiftActions returns the actions of zonal shifts.
func ShiftActions() map[string]api.Action {
	return map[string]api.Action{
		"GetManagedResource": api.Op(getManagedResource),
		"StartZonalShift":    api.Op(startZonalShift),
		"CancelZonalShift":   api.Op(cancelZonalShift),
	}
}

// ShiftRoutes returns the methods and paths of the actions of zonal shifts.
func ShiftRoutes() []api.Route {
	return []api.Route{
		{Method: "GET", Path: "managedresources/*", Action: "GetManagedResource"},
		{Method: "POST", Path: "zonalshifts", Action: "StartZonalShift"},
		{Method: "DELETE", Path: "zonalshifts/*", Action: "CancelZonalShift"},
	}
}

type managedResource struct {
	Arn             string             `json:"arn"`
	Name            string             `json:"name"`
	AppliedWeights  map[string]float64 `json:"appliedWeights"` // by zone id; 0 if traffic is shifted away from the zone, else 1
	ZonalShifts     []shiftInResource  `json:"zonalShifts"`
	Autoshifts      []autoshift        `json:"autoshifts"`
	AutoshiftStatus string             `json:"zonalAutoshiftStatus"`
}

type shiftInResource struct {
	AppliedStatus      string  `json:"appliedStatus"`
	ZonalShiftID       string  `json:"zonalShiftId"`
	ResourceIdentifier string  `json:"resourceIdentifier"`
	AwayFrom           string  `json:"awayFrom"`
	ExpiryTime         float64 `json:"expiryTime"`
	StartTime          float64 `json:"startTime"`
	Comment            string  `json:"comment"`
}

type autoshift struct {
	AppliedStatus string  `json:"appliedStatus"`
	AwayFrom      string  `json:"awayFrom"`
	StartTime     float64 `json:"startTime"`
}

// getManagedResource returns the active shifts of a resource. Only one shift is applied: the first that a user started,
// or else the first autoshift of AWS.
func getManagedResource(c *api.Call, _ *api.None) (managedResource, error) {
	arn := c.Path[0]
	if !c.Region.ZonalShifts.IsManaged(arn) {
		return managedResource{}, c.Region.ZonalShifts.UnmanagedError(arn)
	}
	out := managedResource{
		Arn: arn, Name: arn[strings.LastIndex(arn, "/")+1:], AppliedWeights: map[string]float64{},
		ZonalShifts: []shiftInResource{}, Autoshifts: []autoshift{}, AutoshiftStatus: "DISABLED",
	}
	for _, z := range c.Region.Zones() {
		out.AppliedWeights[z.ID] = 1
	}
	apply := func(s *world.ZonalShift) string { // applies s if it is the first; returns the status of s
		if len(out.ZonalShifts)+len(out.Autoshifts) > 0 {
			return "NOT_APPLIED"
		}
		out.AppliedWeights[s.AwayFrom] = 0
		return "APPLIED"
	}
	shifts := c.Region.ZonalShifts.ActiveFor(arn)
	for _, s := range shifts {
		if !s.AWS {
			out.ZonalShifts = append(out.ZonalShifts, shiftInResource{
				AppliedStatus: apply(s), ZonalShiftID: s.ID, ResourceIdentifier: arn, AwayFrom: s.AwayFrom,
				StartTime: api.Epoch(s.StartedAt), ExpiryTime: api.Epoch(s.ExpiresAt), Comment: s.Comment,
			})
		}
	}
	for _, s := range shifts {
		if s.AWS {
			out.AutoshiftStatus = "ENABLED"
			out.Autoshifts = append(out.Autoshifts, autoshift{AppliedStatus: apply(s), AwayFrom: s.AwayFrom, StartTime: api.Epoch(s.StartedAt)})
		}
	}
	return out, nil
}

type startShiftIn struct {
	ResourceIdentifier string `json:"resourceIdentifier"`
	AwayFrom           string `json:"awayFrom"`
	ExpiresIn          string `json:"expiresIn"` // "90m", "2h"
	Comment            string `json:"comment"`
}

// zonalShift is a shift in the answers of StartZonalShift and CancelZonalShift.
type zonalShift struct {
	ZonalShiftID       string  `json:"zonalShiftId"`
	ResourceIdentifier string  `json:"resourceIdentifier"`
	AwayFrom           string  `json:"awayFrom"`
	ExpiryTime         float64 `json:"expiryTime"`
	StartTime          float64 `json:"startTime"`
	Status             string  `json:"status"`
	Comment            string  `json:"comment"`
}

func zonalShiftOf(s *world.ZonalShift) zonalShift {
	return zonalShift{
		ZonalShiftID: s.ID, ResourceIdentifier: s.Resource, AwayFrom: s.AwayFrom, ExpiryTime: api.Epoch(s.ExpiresAt),
		StartTime: api.Epoch(s.StartedAt), Status: s.Status, Comment: s.Comment,
	}
}

func startZonalShift(c *api.Call, in *startShiftIn) (zonalShift, error) {
	number, unit := strings.TrimRight(in.ExpiresIn, "mh"), strings.TrimLeft(in.ExpiresIn, "0123456789")
	n, err := strconv.Atoi(number)
	if err != nil || unit != "m" && unit != "h" {
		return zonalShift{}, &failure.Error{Code: "ValidationException", Message: "expiresIn is not a number of minutes or hours."}
	}
	duration := time.Duration(n) * time.Minute
	if unit == "h" {
		duration = time.Duration(n) * time.Hour
	}
	s, err := c.Region.ZonalShifts.Start(c.Now,
		world.ZonalShift{Resource: in.ResourceIdentifier, AwayFrom: in.AwayFrom, Comment: in.Comment}, duration)
	if err != nil {
		return zonalShift{}, err
	}
	return zonalShiftOf(s), nil
}

func cancelZonalShift(c *api.Call, _ *api.None) (zonalShift, error) {
	s, err := c.Region.ZonalShifts.Cancel(c.Path[0])
	if err != nil {
		return zonalShift{}, err
	}
	return zonalShiftOf(s), nil
}

// ShiftPermissions returns the request that IAM evaluates for a call. Policies select the resource of a shift by a
// condition key. The request for CancelZonalShift lacks this key, because its path has only the shift.
func ShiftPermissions(c *api.Call, in any) []iampolicy.Request {
	r := iampolicy.Request{Action: c.Name(), Resource: "*", Keys: iampolicy.Keys{}}
	resource := ""
	switch in := in.(type) {
	case *startShiftIn:
		resource = in.ResourceIdentifier
	case *api.None:
		if c.Action == "GetManagedResource" {
			resource = c.Path[0]
		}
	}
	if resource != "" {
		r.Keys["arc-zonal-shift:ResourceIdentifier"] = []string{resource}
	}
	return []iampolicy.Request{r}
}
