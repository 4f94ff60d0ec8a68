package conversion

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// UsualSpread are the spread constraints that kube-scheduler applies to pods without spread constraints: the
// defaultConstraints of its plugin PodTopologySpread. The zero value has none.
type UsualSpread struct {
	everywhere  []corev1.TopologySpreadConstraint
	byScheduler map[string][]corev1.TopologySpreadConstraint // by schedulerName, from a KubeSchedulerConfiguration
}

// IsZero reports whether there are no default constraints.
func (u UsualSpread) IsZero() bool { return len(u.everywhere) == 0 && len(u.byScheduler) == 0 }

// schedulerText is the input of ReadUsualSpread: the short form of Karpenter's setting, or kube-scheduler's own
// configuration.
type schedulerText struct {
	Kind              string     `json:"kind"`
	PodTopologySpread spreadArgs `json:"podTopologySpread"`
	Profiles          []profile  `json:"profiles"`
}

// profile is a scheduler in a KubeSchedulerConfiguration.
type profile struct {
	SchedulerName string         `json:"schedulerName"`
	PluginConfig  []pluginConfig `json:"pluginConfig"`
}

// pluginConfig has the arguments of one plugin.
type pluginConfig struct {
	Name string     `json:"name"`
	Args spreadArgs `json:"args"`
}

// spreadArgs is PodTopologySpreadArgs of kubescheduler.config.k8s.io/v1.
type spreadArgs struct {
	DefaultConstraints []corev1.TopologySpreadConstraint `json:"defaultConstraints"`
	DefaultingType     string                            `json:"defaultingType"`
}

// The values of spreadArgs.DefaultingType. In kube-scheduler's own configuration, empty means System.
const (
	defaultingSystem = "System"
	defaultingList   = "List"
)

// spreadPlugin is the name of the plugin whose arguments have the default constraints.
const spreadPlugin = "PodTopologySpread"

// ReadUsualSpread reads the default spread constraints from YAML or JSON: either {podTopologySpread:
// {defaultConstraints: [...]}}, the form of Karpenter's SCHEDULER_CONFIG, or a whole KubeSchedulerConfiguration, whose
// other fields are ignored. An empty text has no constraints. The error names the invalid field.
func ReadUsualSpread(text string) (UsualSpread, error) {
	var head struct {
		Kind string `json:"kind"`
	}
	if err := yaml.Unmarshal([]byte(text), &head); err != nil {
		var word string
		if yaml.Unmarshal([]byte(text), &word) == nil { // probably the path of a file
			return UsualSpread{}, fmt.Errorf("read the scheduler configuration: %q is a word; give the text of the configuration itself,"+
				" not the path of its file: \"$(cat FILE)\"", word)
		}
		return UsualSpread{}, fmt.Errorf("read the scheduler configuration: %w; write it as YAML or JSON", err)
	}
	var all schedulerText
	switch head.Kind {
	case "":
		if err := yaml.UnmarshalStrict([]byte(text), &all); err != nil {
			return UsualSpread{}, fmt.Errorf("read the scheduler configuration: %w;"+
				" write {podTopologySpread: {defaultConstraints: [...]}} or a KubeSchedulerConfiguration", err)
		}
		if all.Profiles != nil {
			return UsualSpread{}, fmt.Errorf("read the scheduler configuration: it has profiles and no kind;" +
				" write kind: KubeSchedulerConfiguration")
		}
		list := all.PodTopologySpread.DefaultConstraints
		return UsualSpread{everywhere: list}, constraintsError("podTopologySpread", list)
	case "KubeSchedulerConfiguration":
		if err := yaml.Unmarshal([]byte(text), &all); err != nil {
			return UsualSpread{}, fmt.Errorf("read the scheduler configuration: %w", err)
		}
		return ofProfiles(all.Profiles)
	}
	return UsualSpread{}, fmt.Errorf("read the scheduler configuration: kind is %s, want KubeSchedulerConfiguration", head.Kind)
}

// ofProfiles returns the default constraints of each profile. Without profiles, kube-scheduler's defaults apply.
func ofProfiles(profiles []profile) (UsualSpread, error) {
	if len(profiles) == 0 {
		profiles = []profile{{}}
	}
	out := UsualSpread{byScheduler: map[string][]corev1.TopologySpreadConstraint{}}
	for i, p := range profiles {
		var args spreadArgs
		at := ""
		for j, c := range p.PluginConfig {
			if c.Name == spreadPlugin {
				args, at = c.Args, fmt.Sprintf("profiles[%d].pluginConfig[%d].args", i, j)
			}
		}
		if err := args.complete(at); err != nil {
			return UsualSpread{}, err
		}
		if err := constraintsError(at, args.DefaultConstraints); err != nil {
			return UsualSpread{}, err
		}
		name := p.SchedulerName
		if name == "" {
			name = corev1.DefaultSchedulerName
		}
		if len(args.DefaultConstraints) > 0 {
			out.byScheduler[name] = args.DefaultConstraints
		}
	}
	return out, nil
}

// complete sets the defaults of kube-scheduler. at is the path of the arguments, for errors.
func (a *spreadArgs) complete(at string) error {
	switch a.DefaultingType {
	case "", defaultingSystem:
		if len(a.DefaultConstraints) > 0 {
			return fmt.Errorf("read the scheduler configuration: %s has defaultConstraints, which need defaultingType: List", at)
		}
		a.DefaultConstraints = []corev1.TopologySpreadConstraint{
			{TopologyKey: corev1.LabelHostname, MaxSkew: 3, WhenUnsatisfiable: corev1.ScheduleAnyway},
			{TopologyKey: corev1.LabelTopologyZone, MaxSkew: 5, WhenUnsatisfiable: corev1.ScheduleAnyway},
		}
	case defaultingList:
	default:
		return fmt.Errorf("read the scheduler configuration: %s.defaultingType is %q, want System or List", at, a.DefaultingType)
	}
	return nil
}

// constraintsError says which default constraint kube-scheduler would reject, and why.
func constraintsError(at string, list []corev1.TopologySpreadConstraint) error {
	for i := range list {
		c := &list[i]
		_, wrong := spreadOf(c, nil)
		same := func(o corev1.TopologySpreadConstraint) bool {
			return o.TopologyKey == c.TopologyKey && o.WhenUnsatisfiable == c.WhenUnsatisfiable
		}
		switch {
		case wrong != "":
		case c.LabelSelector != nil, len(c.MatchLabelKeys) > 0:
			wrong = " has a labelSelector or matchLabelKeys; each pod gets the selector of its Services and controller: leave them out"
		case slices.ContainsFunc(list[:i], same):
			wrong = " repeats the topologyKey and whenUnsatisfiable of an earlier constraint; leave it out"
		}
		if wrong != "" {
			return fmt.Errorf("read the scheduler configuration: %s.defaultConstraints[%d]%s", at, i, wrong)
		}
	}
	return nil
}

// of returns the default constraints of the pod: none if it has its own, or if no Service or controller selects it.
func (u UsualSpread) of(pod *corev1.Pod, groups *PodSelectors) []cluster.Spread {
	list := u.everywhere
	if u.byScheduler != nil {
		name := pod.Spec.SchedulerName
		if name == "" {
			name = corev1.DefaultSchedulerName
		}
		list = u.byScheduler[name]
	}
	if len(list) == 0 || len(pod.Spec.TopologySpreadConstraints) > 0 {
		return nil
	}
	selector, ok := groups.selector(pod)
	if !ok {
		return nil
	}
	var out []cluster.Spread
	for i := range list {
		spread, _ := spreadOf(&list[i], nil) // checked by constraintsError
		spread.Selector = selector
		out = append(out, spread)
	}
	return out
}
