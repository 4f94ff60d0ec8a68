package conversion

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// DefaultSpread has the spread constraints that kube-scheduler applies to pods without spread constraints: the
// defaultConstraints of its plugin PodTopologySpread. The zero value has none.
type DefaultSpread struct {
	anyScheduler []corev1.TopologySpreadConstraint            // for pods of all schedulers
	byScheduler  map[string][]corev1.TopologySpreadConstraint // by schedulerName; if set, anyScheduler is empty
}

// IsZero reports whether there are no default constraints.
func (d DefaultSpread) IsZero() bool { return len(d.anyScheduler) == 0 && len(d.byScheduler) == 0 }

// schedulerConfig is the input of ReadDefaultSpread: the short form of Karpenter's setting, or kube-scheduler's own
// configuration.
type schedulerConfig struct {
	Kind              string     `json:"kind"`
	PodTopologySpread spreadArgs `json:"podTopologySpread"`
	Profiles          []profile  `json:"profiles"`
}

// profile is a scheduler in a KubeSchedulerConfiguration.
type profile struct {
	SchedulerName string         `json:"schedulerName"`
	PluginConfig  []pluginConfig `json:"pluginConfig"`
}

type pluginConfig struct {
	Name string     `json:"name"`
	Args spreadArgs `json:"args"`
}

// spreadArgs is PodTopologySpreadArgs of kubescheduler.config.k8s.io/v1.
type spreadArgs struct {
	DefaultConstraints []corev1.TopologySpreadConstraint `json:"defaultConstraints"`
	DefaultingType     string                            `json:"defaultingType"`
}

// The values of spreadArgs.DefaultingType. In kube-scheduler's own configuration, empty means System. Karpenter's short
// form ignores the field.
const (
	defaultingSystem = "System"
	defaultingList   = "List"
)

const spreadPlugin = "PodTopologySpread"

// ReadDefaultSpread reads the default spread constraints from YAML or JSON, in one of two forms:
//
//   - {podTopologySpread: {defaultConstraints: [...]}}, as in Karpenter's SCHEDULER_CONFIG;
//   - a whole KubeSchedulerConfiguration, whose other fields are ignored.
//
// An empty text is valid and has no constraints. The error names the invalid field.
func ReadDefaultSpread(text string) (DefaultSpread, error) {
	var head struct {
		Kind string `json:"kind"`
	}
	if err := yaml.Unmarshal([]byte(text), &head); err != nil {
		var word string
		if yaml.Unmarshal([]byte(text), &word) == nil { // probably the path of a file
			return DefaultSpread{}, fmt.Errorf("read the scheduler configuration: %q is a word; give the text of the configuration itself,"+
				" not the path of its file: \"$(cat FILE)\"", word)
		}
		return DefaultSpread{}, fmt.Errorf("read the scheduler configuration: %w; write it as YAML or JSON", err)
	}
	var config schedulerConfig
	switch head.Kind {
	case "":
		if err := yaml.UnmarshalStrict([]byte(text), &config); err != nil {
			return DefaultSpread{}, fmt.Errorf("read the scheduler configuration: %w;"+
				" write {podTopologySpread: {defaultConstraints: [...]}} or a KubeSchedulerConfiguration", err)
		}
		if config.Profiles != nil {
			return DefaultSpread{}, fmt.Errorf("read the scheduler configuration: it has profiles and no kind;" +
				" write kind: KubeSchedulerConfiguration")
		}
		list := config.PodTopologySpread.DefaultConstraints
		return DefaultSpread{anyScheduler: list}, constraintsError("podTopologySpread", list)
	case "KubeSchedulerConfiguration":
		if err := yaml.Unmarshal([]byte(text), &config); err != nil {
			return DefaultSpread{}, fmt.Errorf("read the scheduler configuration: %w", err)
		}
		return defaultsOf(config.Profiles)
	}
	return DefaultSpread{}, fmt.Errorf("read the scheduler configuration: kind is %s, want KubeSchedulerConfiguration", head.Kind)
}

// defaultsOf returns the default constraints of each profile. Without profiles, kube-scheduler's own defaults apply.
func defaultsOf(profiles []profile) (DefaultSpread, error) {
	if len(profiles) == 0 {
		profiles = []profile{{}}
	}
	out := DefaultSpread{byScheduler: map[string][]corev1.TopologySpreadConstraint{}}
	for i, p := range profiles {
		var args spreadArgs
		path := ""
		for j, c := range p.PluginConfig {
			if c.Name == spreadPlugin {
				args, path = c.Args, fmt.Sprintf("profiles[%d].pluginConfig[%d].args", i, j)
			}
		}
		if err := args.setDefaults(path); err != nil {
			return DefaultSpread{}, err
		}
		if err := constraintsError(path, args.DefaultConstraints); err != nil {
			return DefaultSpread{}, err
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

// setDefaults sets the constraints of the defaultingType System. path is the path of the arguments, for errors.
func (a *spreadArgs) setDefaults(path string) error {
	switch a.DefaultingType {
	case "", defaultingSystem:
		if len(a.DefaultConstraints) > 0 {
			return fmt.Errorf("read the scheduler configuration: %s has defaultConstraints, which need defaultingType: List", path)
		}
		a.DefaultConstraints = []corev1.TopologySpreadConstraint{
			{TopologyKey: corev1.LabelHostname, MaxSkew: 3, WhenUnsatisfiable: corev1.ScheduleAnyway},
			{TopologyKey: corev1.LabelTopologyZone, MaxSkew: 5, WhenUnsatisfiable: corev1.ScheduleAnyway},
		}
	case defaultingList:
	default:
		return fmt.Errorf("read the scheduler configuration: %s.defaultingType is %q, want System or List", path, a.DefaultingType)
	}
	return nil
}

// constraintsError returns an error for the first default constraint that kube-scheduler would reject; nil if there is
// none. path is the path of the plugin's arguments.
func constraintsError(path string, list []corev1.TopologySpreadConstraint) error {
	for i := range list {
		c := &list[i]
		_, problem := spreadOf(c, nil)
		repeats := func(o corev1.TopologySpreadConstraint) bool {
			return o.TopologyKey == c.TopologyKey && o.WhenUnsatisfiable == c.WhenUnsatisfiable
		}
		switch {
		case problem != "":
		case c.LabelSelector != nil, len(c.MatchLabelKeys) > 0:
			problem = " has a labelSelector or matchLabelKeys; each pod gets the selector of its Services and controller: leave them out"
		case slices.ContainsFunc(list[:i], repeats):
			problem = " repeats the topologyKey and whenUnsatisfiable of an earlier constraint; leave it out"
		}
		if problem != "" {
			return fmt.Errorf("read the scheduler configuration: %s.defaultConstraints[%d]%s", path, i, problem)
		}
	}
	return nil
}

// constraintsOf returns the default constraints of the pod: none if the pod has its own constraints, or if no Service
// or controller selects it.
func (d DefaultSpread) constraintsOf(pod *corev1.Pod, groups *PodSelectors) []cluster.Spread {
	list := d.anyScheduler
	if d.byScheduler != nil {
		name := pod.Spec.SchedulerName
		if name == "" {
			name = corev1.DefaultSchedulerName
		}
		list = d.byScheduler[name]
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
		spread, _ := spreadOf(&list[i], nil) // valid: constraintsError has checked it
		spread.Selector = selector
		out = append(out, spread)
	}
	return out
}
