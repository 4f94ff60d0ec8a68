// Package helmvalues reads values files of Karpenter's and Joiner's Helm charts for joiner migrate.
//
// In: values files and the shapes that the chart allows.
// Out: the settings that the values result in, and the values that Joiner's chart does not have.
// Never: a call of Helm, of a cluster or of AWS.
package helmvalues

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/joiner-sh/joiner/internal/cli/inputfile"
	"github.com/joiner-sh/joiner/internal/cli/message"
	"github.com/joiner-sh/joiner/internal/config"
	"github.com/joiner-sh/joiner/internal/kube/evidence"
	"github.com/joiner-sh/joiner/internal/migration"
	"github.com/joiner-sh/joiner/internal/suggest"
)

// ChartValues are the Helm values of Karpenter's chart.
type ChartValues struct {
	Flat    map[string]string   // the values as text, by path; nil: no file was given
	environ []string            // environment of the container that the chart renders
	problem string              // sentence about the values that Joiner's chart refuses; empty: no value is refused
	ignored []migration.Ignored // values of Karpenter's charts before 1.0, which both charts ignore now
}

// ReadValues reads files of Helm values. Values of a later file override those of an earlier file.
func ReadValues(files []string) (ChartValues, error) {
	if len(files) == 0 {
		return ChartValues{}, nil
	}
	out := ChartValues{Flat: map[string]string{}}
	var wrongShapes []string
	for _, file := range files {
		text, err := inputfile.Read(file)
		if err != nil {
			return out, fmt.Errorf("read values: %w", message.WithoutSyscall(err))
		}
		var tree map[string]any
		var list []any
		switch err := yaml.UnmarshalStrict(text, &tree); {
		case err != nil && yaml.Unmarshal(text, &list) == nil:
			return out, fmt.Errorf("read values: %s is not a file of values: it is a list, and should be a mapping", file)
		case err != nil:
			return out, fmt.Errorf("read values: %s is not a file of values: %s", file, message.OneLine(err.Error()))
		}
		if _, isManifest := tree["apiVersion"]; isManifest {
			return out, fmt.Errorf("read values: %s is not a file of values but a manifest: give it with -f", file)
		}
		flatten(tree, "", out.Flat)
		wrongShapes = append(wrongShapes, shapeProblems(tree)...)
	}
	out.ignored = takeLeftovers(out.Flat)
	out.environ, out.problem = environOf(out.Flat)
	if len(wrongShapes) > 0 {
		out.problem = "the chart rejects the values: " + strings.Join(wrongShapes, "; ")
	}
	return out, nil
}

// takeLeftovers removes the values of config.Leftovers from flat, and returns them with what to set instead. It keeps a
// cluster name as settings.clusterName.
func takeLeftovers(flat map[string]string) []migration.Ignored {
	var out []migration.Ignored
	for _, l := range config.Leftovers() {
		for _, path := range slices.Sorted(maps.Keys(flat)) {
			if path != l.Path && !strings.HasPrefix(path, l.Path+".") {
				continue
			}
			if strings.HasSuffix(path, "clusterName") && flat["settings.clusterName"] == "" {
				flat["settings.clusterName"] = flat[path] // as Joiner's chart does
			}
			out = append(out, migration.Ignored{
				Setting: path,
				Value:   flat[path],
				Says:    "a value of Karpenter's charts before 1.0, which Karpenter's current chart ignores, too: " + l.Replacement,
			})
			delete(flat, path)
		}
	}
	return out
}

// flatten adds the values of tree to into, by path. path is the path of tree itself, with a dot at its end. A list
// becomes one value: its items, joined with commas.
func flatten(tree map[string]any, path string, into map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		switch v := tree[name].(type) {
		case map[string]any:
			flatten(v, path+name+".", into)
		case []any:
			var items []string
			for _, item := range v {
				items = append(items, fmt.Sprint(item))
			}
			into[path+name] = strings.Join(items, ",")
		case nil:
		default:
			into[path+name] = fmt.Sprint(v)
		}
	}
}

// environOf returns the environment ("NAME=value") that the chart renders from its values, and a sentence about the
// last setting that Joiner's chart does not have; empty if there is none.
func environOf(flat map[string]string) (environ []string, problem string) {
	variables := map[string]string{} // by the setting's name in the chart
	for _, s := range slices.Concat(config.All(), config.Unsupported()) {
		variables[chartName(s.Flag)] = s.Variable
	}
	var gates []string
	for _, path := range slices.Sorted(maps.Keys(flat)) {
		setting, isSetting := strings.CutPrefix(path, "settings.")
		switch gate, isGate := strings.CutPrefix(path, "settings.featureGates."); {
		case path == "logLevel", path == "logOutputPaths", path == "logErrorOutputPaths":
			environ = append(environ, variables[path]+"="+flat[path])
		case !isSetting: // about the Deployment, not a setting of the controller
		case isGate:
			gates = append(gates, strings.ToUpper(gate[:1])+gate[1:]+"="+flat[path])
		case strings.HasPrefix(setting, "awsFeatureGates."):
			name := strings.TrimPrefix(setting, "awsFeatureGates.")
			environ = append(environ, "AWS_FEATURE_GATES="+strings.ToUpper(name[:1])+name[1:]+"="+flat[path])
		default:
			variable, ok := variables[setting]
			if !ok {
				problem = fmt.Sprintf("the chart has no value %s%s", path, suggest.Hint(setting, slices.Collect(maps.Keys(variables))))
				continue
			}
			environ = append(environ, variable+"="+flat[path])
		}
	}
	if len(gates) > 0 {
		environ = append(environ, "FEATURE_GATES="+strings.Join(gates, ","))
	}
	return environ, problem
}

// installed returns the controller that the chart renders from the values.
func (v ChartValues) installed() evidence.InstalledController {
	out := evidence.InstalledController{Controller: migration.Controller{
		Product: migration.Karpenter,
		Version: v.Flat["controller.image.tag"],
		Account: v.Flat["serviceAccount.name"],
		Role:    v.Flat["serviceAccount.annotations.eks.amazonaws.com/role-arn"]}, Environ: v.environ}
	_, _ = fmt.Sscan(v.Flat["replicas"], &out.Replicas) // stays 0, not known, if the value is not a number
	return out
}

// AddControllers adds the installed controllers to found, each with its settings that Joiner ignores. If there are
// values but no controller of Karpenter is installed, it also adds the controller that the chart renders. It returns
// Karpenter's settings; if they are invalid, only the cluster name.
func AddControllers(found *migration.Installation, installed []evidence.InstalledController, chart ChartValues) config.Settings {
	isKarpenter := func(i evidence.InstalledController) bool { return i.Product == migration.Karpenter }
	if chart.Flat != nil && !slices.ContainsFunc(installed, isKarpenter) {
		installed = append(installed, chart.installed())
	}
	var karpenter config.Settings
	for _, i := range installed {
		c := i.Controller
		settings, notes, err := config.FromProcess(i.Args, i.Environ)
		if err != nil {
			c.Problem = message.OneLine(err.Error())
			karpenter.ClusterName = cmp.Or(karpenter.ClusterName, variableOf(i.Environ, "CLUSTER_NAME"))
		} else if c.Product == migration.Karpenter {
			karpenter = settings
		}
		if c.Product == migration.Karpenter && chart.problem != "" {
			c.Problem = strings.TrimSuffix(chart.problem+"; "+c.Problem, "; ") // a misspelt value may explain a missing setting
		}
		for _, n := range notes {
			c.Ignored = append(c.Ignored, migration.Ignored{Setting: n.Setting, Value: n.Value, Says: n.Explanation})
		}
		if c.Product == migration.Karpenter {
			c.Ignored = append(c.Ignored, chart.ignored...)
		}
		c.Queue = settings.InterruptionQueue
		if settings.LeaderElection {
			c.Lease = cmp.Or(settings.LeaderElectionNamespace, c.Namespace) + "/" + settings.LeaderElectionName
		}
		found.Controllers = append(found.Controllers, c)
	}
	return karpenter
}

func variableOf(environ []string, name string) string {
	for _, v := range environ {
		if key, value, _ := strings.Cut(v, "="); key == name {
			return value
		}
	}
	return ""
}
